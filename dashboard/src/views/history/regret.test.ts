import { describe, expect, it } from "vitest";
import { track } from "../../live/samples";
import { CLAIRVOYANT, ORACLE } from "../../schedulers";
import { referenceOf, regret } from "./regret";

describe("the reference", () => {
  const empty = track([], []);

  it("of a turnaround is the clairvoyant scheduler where it runs, otherwise the Oracle", () => {
    const both = { [ORACLE]: empty, [CLAIRVOYANT]: empty };
    expect(referenceOf(both, "turnaround")).toBe(CLAIRVOYANT);
    expect(referenceOf(both, "time")).toBe(ORACLE);
    expect(referenceOf({ [ORACLE]: empty }, "turnaround")).toBe(ORACLE);
    expect(referenceOf({ greedy: empty }, "turnaround")).toBeNull();
  });
});

describe("regret per interval", () => {
  it("shows a learner that was slow at first and then as good as the Oracle", () => {
    const oracle = track([100, 200], [10, 20]);
    const learner = track([100, 200], [30, 40]);
    expect(regret(learner, oracle, "time", 2)).toEqual([
      { tasks: 100, ratio: 3 },
      { tasks: 200, ratio: 1 },
    ]);
  });

  it("compares only tasks that both have results for", () => {
    const oracle = track([100, 200], [10, 20]);
    const late = track([50, 100], [10, 30]);
    // The Oracle needs 5 for the first fifty tasks and 5 for the next.
    expect(regret(late, oracle, "time", 2)).toEqual([
      { tasks: 50, ratio: 2 },
      { tasks: 100, ratio: 4 },
    ]);
  });

  it("has no more intervals than points", () => {
    const oracle = track([100], [10]);
    expect(regret(track([100], [11]), oracle, "time", 40)).toEqual([{ tasks: 100, ratio: 1.1 }]);
  });

  it("is empty without results to compare with", () => {
    expect(regret(track([], []), track([], []), "time", 10)).toEqual([]);
    expect(regret(track([10], [1]), track([10], [0]), "time", 1)).toEqual([]);
  });
});
