import { describe, expect, it } from "vitest";
import { ORACLE } from "../../schedulers";
import { changes, oracleChanges, specDifferences } from "./differences";
import type { TotalsAt } from "./sameTasks";

function totals(avg_time: number, vs_oracle: number | null): TotalsAt {
  const averages = { avg_time, avg_turnaround: avg_time * 4, avg_energy: avg_time * 50, avg_cost: 0 };
  return { ...averages, vs_oracle } as TotalsAt;
}

describe("differences of two specs", () => {
  it("are the fields that differ, with both values", () => {
    const a = { seed: 1, cluster: { gpus: 4, cpus: 1 }, schedulers: ["greedy"] };
    const b = { seed: 2, cluster: { gpus: 4, cpus: 1 }, schedulers: ["greedy", ORACLE] };
    expect(specDifferences(a, b)).toEqual([
      { path: "seed", a: 1, b: 2 },
      { path: "schedulers", a: ["greedy"], b: ["greedy", ORACLE] },
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

  it("of equal specs do not exist", () => {
    expect(specDifferences({ a: [1], b: { c: null } }, { a: [1], b: { c: null } })).toEqual([]);
  });
});

describe("changes of averages", () => {
  it("are relative to the first run", () => {
    const [row] = changes({ greedy: totals(2, 1.5) }, { greedy: totals(1.5, 1.25) });
    expect(row?.turnaround).toBe(-0.25);
    expect(row?.time).toBe(-0.25);
    expect(row?.energy).toBe(-0.25);
    expect(row?.cost).toBeNull();
    expect(row?.vsOracle).toBe(-0.25);
  });

  it("have no difference for a scheduler of only one run", () => {
    const rows = changes({ greedy: totals(2, 1.5) }, { [ORACLE]: totals(1, 1) });
    expect(rows.map((row) => [row.name, row.time])).toEqual([
      ["greedy", null],
      [ORACLE, null],
    ]);
  });

  it("list who is closer to the Oracle and who is further, largest change first", () => {
    const a = { x: totals(1, 1.5), y: totals(1, 1.5), z: totals(1, 1.2), o: totals(1, 1) };
    const b = { x: totals(1, 1.4), y: totals(1, 1.1), z: totals(1, 1.3), o: totals(1, 1) };
    const { closer, further } = oracleChanges(changes(a, b));
    expect(closer.map((row) => row.name)).toEqual(["y", "x"]);
    expect(further.map((row) => row.name)).toEqual(["z"]);
  });
});
