import { describe, expect, it } from "vitest";
import type { Progress, RunDetail } from "../../api/types";
import { track } from "../../live/samples";
import { ORACLE } from "../../schedulers";
import { alignedTotals, commonTasks, estimate, type LoadedRun, seedGroups } from "./sameTasks";

function loaded(schedulers: Progress["schedulers"], spec: object = {}): LoadedRun {
  return {
    progress: { run: "r", schedulers },
    detail: { schedulers: {}, spec: { name: "", seed: 1, ...spec } } as unknown as RunDetail,
  };
}

describe("runs of different lengths", () => {
  const ended = loaded({
    greedy: track([32, 64, 96, 100], [32, 80, 96, 110]),
    [ORACLE]: track([32, 64, 96, 100], [16, 32, 48, 50]),
  });
  const running = loaded({
    greedy: track([16, 32, 48, 64, 70], [8, 24, 30, 32, 50]),
    [ORACLE]: track([16, 32, 48, 64], [8, 16, 24, 32]),
  });

  it("have in common the last point of both", () => {
    expect(commonTasks([track([32, 64, 96], []), track([16, 32, 48, 64, 70], [])])).toBe(64);
    expect(commonTasks([track([100], []), track([100], [])])).toBe(100);
    expect(commonTasks([track([3], []), track([5], [])])).toBe(0);
  });

  it("are compared after equally many tasks, and with the Oracle on the same", () => {
    const [a, b] = alignedTotals([ended, running]);
    expect([a?.greedy?.tasks, a?.greedy?.avg_time, a?.greedy?.vs_oracle]).toEqual([64, 80 / 64, 2.5]);
    expect([b?.greedy?.tasks, b?.greedy?.avg_time, b?.greedy?.vs_oracle]).toEqual([64, 0.5, 1]);
    expect(b?.greedy?.avg_slowdown).toBeNull();
  });

  it("drop no scheduler that only one of them has", () => {
    const other = loaded({ eft: track([10, 20], [10, 20]) });
    const [a, b] = alignedTotals([ended, other]);
    expect([a?.greedy?.tasks, b?.eft?.tasks]).toEqual([100, 20]);
    expect(b?.greedy).toBeUndefined();
  });
});

describe("seeds", () => {
  it("group the runs that differ in nothing else", () => {
    const runs = [loaded({}), loaded({}, { pace: "max" }), loaded({}, { seed: 2, name: "again" })];
    expect(seedGroups(runs)).toEqual([[0, 2], [1]]);
  });

  it("give a mean with its 95 % interval", () => {
    // Mean 2, deviation 1, t 4.303 with two degrees of freedom.
    expect(estimate([1, 2, 3])?.half).toBeCloseTo(4.303 / Math.sqrt(3), 6);
    expect(estimate([5])).toEqual({ mean: 5, half: null, runs: 1 });
    expect(estimate([])).toBeNull();
  });
});
