import { describe, expect, it } from "vitest";
import { track } from "../live/samples";
import { totalAt, totalPoints } from "./progress";

describe("a cumulative total", () => {
  const points = track([10, 20, 40], [5, 7, 17]);

  it("is interpolated between its points", () => {
    expect(totalAt(points, "time", 20)).toBe(7);
    expect(totalAt(points, "time", 30)).toBe(12);
    expect(totalAt(points, "energy", 10)).toBe(150);
  });

  it("is drawn from 0 on", () => {
    expect(totalPoints(points, "time")).toEqual([
      [0, 0],
      [10, 5],
      [20, 7],
      [40, 17],
    ]);
    expect(totalPoints(track([], []), "time")).toEqual([]);
  });

  it("starts at 0 and is unknown after its last point", () => {
    expect(totalAt(points, "time", 0)).toBe(0);
    expect(totalAt(points, "time", 5)).toBe(2.5);
    expect(totalAt(points, "time", 41)).toBeUndefined();
  });
});
