import { describe, expect, it } from "vitest";
import { createdAt, learnersOf, measured, measureOf, versionsInUse } from "./models";
import type { StoredModel } from "./types";

function row(name: string, version: number, change: Partial<StoredModel> = {}): StoredModel {
  return {
    run: "r1",
    name,
    version,
    shipped: true,
    reason: "",
    score: null,
    champion_score: null,
    sha256: "",
    format: "onnx",
    trained_on: 1000,
    first_task: 0,
    last_task: 999,
    metrics: {},
    created_at: "2026-01-02T03:04:05+00:00",
    ...change,
  };
}

describe("model versions", () => {
  it("in use are the newest published ones", () => {
    const rows = [
      row("hybrid_ml", 4, { shipped: false }),
      row("hybrid_ml", 3),
      row("rl_agent", 9),
      row("hybrid_ml", 2),
    ];
    expect(versionsInUse(rows)).toEqual({ hybrid_ml: 3, rl_agent: 9 });
    expect(learnersOf(rows)).toEqual(["hybrid_ml", "rl_agent"]);
  });

  it("are compared by score where there is one, else by loss", () => {
    const forest = [row("hybrid_ml", 1), row("hybrid_ml", 2, { score: 1.02, metrics: { loss: 3 } })];
    const agent = [row("rl_agent", 1, { metrics: { loss: 0.25, steps: 50 } })];
    expect(measureOf(forest).key).toBe("score");
    expect(measured(forest, measureOf(forest)).map((each) => each.version)).toEqual([2]);
    expect(measureOf(agent).key).toBe("loss");
    expect(agent.map(measureOf(agent).of)).toEqual([0.25]);
    expect(measureOf([]).key).toBe("score");
  });

  it("have the time of their creation", () => {
    expect(createdAt(row("hybrid_ml", 1))).toBe(Date.UTC(2026, 0, 2, 3, 4, 5) / 1000);
  });
});
