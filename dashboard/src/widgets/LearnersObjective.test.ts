import { describe, expect, it } from "vitest";
import { describeObjective, objectiveOf } from "../weights";
import { followers, obstacle } from "./LearnersObjective";

const RUN = { state: "running" as const, lockstep: false, learning_schedulers: ["predictive"] };
const TURNAROUND = { turnaround: 1, energy: 0, cost: 0 };

describe("the weights as an objective of the learners", () => {
  it("are relative to turnaround, to which execution time is added", () => {
    expect(objectiveOf({ turnaround: 60, time: 20, energy: 40, cost: 8 })).toEqual({
      turnaround: 1,
      energy: 0.5,
      cost: 0.1,
    });
    expect(objectiveOf({ turnaround: 0, time: 0, energy: 40, cost: 8 })).toBeNull();
  });

  it("are described as a sum", () => {
    expect(describeObjective(TURNAROUND)).toBe("turnaround");
    expect(describeObjective({ turnaround: 2, energy: 1, cost: 2 })).toBe("turnaround + 0.5 × energy + cost");
  });

  it("can be sent only where learners can follow", () => {
    const energy = { ...TURNAROUND, energy: 1 };
    expect(obstacle(RUN, energy, TURNAROUND)).toBeNull();
    expect(obstacle({ ...RUN, state: "completed" }, energy, TURNAROUND)).toContain("over");
    expect(obstacle({ ...RUN, lockstep: true }, energy, TURNAROUND)).toContain("lockstep");
    expect(obstacle(RUN, null, TURNAROUND)).toContain("above 0");
    expect(obstacle(RUN, TURNAROUND, TURNAROUND)).toContain("already");
  });

  it("are followed by learners that minimise the objective", () => {
    expect(followers({ learning_schedulers: ["bandit", "hybrid_ml", "my_own", "rl_agent"] })).toEqual([
      "bandit",
      "my_own",
    ]);
  });
});
