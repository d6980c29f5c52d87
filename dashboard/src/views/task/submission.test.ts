import { describe, expect, it } from "vitest";
import { EXAMPLE, submission } from "./submission";

describe("a submitted task", () => {
  it("carries numbers, and its parents as a list", () => {
    expect(submission("r1", { ...EXAMPLE, dependencies: "#12, 13" })).toEqual({
      run: "r1",
      tasks: [{ size: 960, compute_intensity: 0.75, memory_required: 81, dependencies: [12, 13] }],
    });
  });

  it("leaves to the gateway what is no number", () => {
    expect(submission("r1", { ...EXAMPLE, size: "big", memory_required: "" })).toEqual({
      run: "r1",
      tasks: [{ size: "big", compute_intensity: 0.75, memory_required: "", dependencies: [] }],
    });
  });
});
