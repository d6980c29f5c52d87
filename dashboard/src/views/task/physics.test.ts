import { describe, expect, it } from "vitest";
import { notesOf } from "./Physics";

describe("the time on a device type", () => {
  const row = { expected_seconds: 1, fits_memory: true, measured: null };

  it("needs no note where the formula applies or the size was measured", () => {
    expect(notesOf(row)).toEqual([]);
    expect(notesOf({ ...row, measured: true })).toEqual([]);
  });

  it("says when the memory is too small and when no such size was measured", () => {
    expect(notesOf({ ...row, fits_memory: false, measured: false })).toEqual([
      "does not fit its memory",
      "outside of the measured sizes",
    ]);
  });

  it("says only that the type cannot run it where it cannot", () => {
    expect(notesOf({ expected_seconds: null, fits_memory: false, measured: false })).toEqual(["cannot run it"]);
  });
});
