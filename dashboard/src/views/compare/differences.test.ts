import { describe, expect, it } from "vitest";
import type { Standing } from "../../api/types";
import { changes, specDifferences, verdict } from "./differences";

function standing(avg_time: number, vs_oracle: number | null): Standing {
  return {
    results: 100,
    failed: 0,
    gpu_tasks: 50,
    total_time: avg_time * 100,
    avg_time,
    avg_wait: 0,
    makespan: 10,
    avg_energy: avg_time * 50,
    avg_cost: 0,
    total_energy: avg_time * 5000,
    total_cost: 0,
    clock: 10,
    cpu_busy: [1],
    gpu_busy: [1],
    vs_oracle,
  };
}

describe("differences of two specs", () => {
  it("are the fields that differ, with both values", () => {
    const a = { seed: 1, cluster: { gpus: 4, cpus: 1 }, schedulers: ["greedy"] };
    const b = { seed: 2, cluster: { gpus: 4, cpus: 1 }, schedulers: ["greedy", "oracle"] };
    expect(specDifferences(a, b)).toEqual([
      { path: "seed", a: 1, b: 2 },
      { path: "schedulers", a: ["greedy"], b: ["greedy", "oracle"] },
    ]);
  });

  it("include fields that only one of them has", () => {
    const a = { mix: { size: { kind: "pareto", alpha: 2 } } };
    const b = { mix: { size: { kind: "uniform", low: 1 } } };
    expect(specDifferences(a, b)).toEqual([
      { path: "mix.size.kind", a: "pareto", b: "uniform" },
      { path: "mix.size.alpha", a: 2, b: undefined },
      { path: "mix.size.low", a: undefined, b: 1 },
    ]);
  });

  it("of equal specs are none", () => {
    expect(specDifferences({ a: [1], b: { c: null } }, { a: [1], b: { c: null } })).toEqual([]);
  });
});

describe("changes of standings", () => {
  it("are relative to the first run", () => {
    const [row] = changes({ greedy: standing(2, 1.5) }, { greedy: standing(1.5, 1.25) });
    expect(row?.time).toBe(-0.25);
    expect(row?.energy).toBe(-0.25);
    expect(row?.cost).toBeNull();
    expect(row?.vsOracle).toBe(-0.25);
  });

  it("list schedulers of one run alone without a change", () => {
    const rows = changes({ greedy: standing(2, 1.5) }, { oracle: standing(1, 1) });
    expect(rows.map((row) => [row.name, row.time])).toEqual([
      ["greedy", null],
      ["oracle", null],
    ]);
  });

  it("name who gained and who lost against the Oracle, most first", () => {
    const a = { x: standing(1, 1.5), y: standing(1, 1.5), z: standing(1, 1.2), o: standing(1, 1) };
    const b = { x: standing(1, 1.4), y: standing(1, 1.1), z: standing(1, 1.3), o: standing(1, 1) };
    const { gained, lost } = verdict(changes(a, b));
    expect(gained.map((row) => row.name)).toEqual(["y", "x"]);
    expect(lost.map((row) => row.name)).toEqual(["z"]);
  });
});
