import { describe, expect, it } from "vitest";
import type { ProgressSeries } from "../../api/types";
import { regret, totalAt, totalPoints } from "./regret";

function series(tasks: number[], time: number[]): ProgressSeries {
  return { tasks, total_time: time, total_energy: time.map((t) => t * 30), total_cost: time };
}

describe("a running total", () => {
  const points = series([10, 20, 40], [5, 7, 17]);

  it("is read off at its points and straight between them", () => {
    expect(totalAt(points, "time", 20)).toBe(7);
    expect(totalAt(points, "time", 30)).toBe(12);
    expect(totalAt(points, "energy", 10)).toBe(150);
  });

  it("is drawn from nothing on", () => {
    expect(totalPoints(points, "time")).toEqual([[0, 0], [10, 5], [20, 7], [40, 17]]);
    expect(totalPoints(series([], []), "time")).toEqual([]);
  });

  it("starts at nothing and is unknown beyond its end", () => {
    expect(totalAt(points, "time", 0)).toBe(0);
    expect(totalAt(points, "time", 5)).toBe(2.5);
    expect(totalAt(points, "time", 41)).toBeUndefined();
  });
});

describe("regret per stretch", () => {
  it("shows a learner that was slow at first and then as good as the Oracle", () => {
    const oracle = series([100, 200], [10, 20]);
    const learner = series([100, 200], [30, 40]);
    expect(regret(learner, oracle, "time", 2)).toEqual([
      { tasks: 100, ratio: 3 },
      { tasks: 200, ratio: 1 },
    ]);
  });

  it("compares only tasks that both have results for", () => {
    const oracle = series([100, 200], [10, 20]);
    const late = series([50, 100], [10, 30]);
    // The Oracle needs 5 for the first fifty tasks and 5 for the next.
    expect(regret(late, oracle, "time", 2)).toEqual([
      { tasks: 50, ratio: 2 },
      { tasks: 100, ratio: 4 },
    ]);
  });

  it("makes no more stretches than there are points", () => {
    const oracle = series([100], [10]);
    expect(regret(series([100], [11]), oracle, "time", 40)).toEqual([{ tasks: 100, ratio: 1.1 }]);
  });

  it("says nothing where there is nothing to compare with", () => {
    expect(regret(series([], []), series([], []), "time", 10)).toEqual([]);
    expect(regret(series([10], [1]), series([10], [0]), "time", 1)).toEqual([]);
  });
});
