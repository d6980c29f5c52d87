import { describe, expect, it } from "vitest";
import { row } from "../live/samples";
import { inOrder } from "../ui/Table";
import { pointsOf } from "./Cumulative";
import { devicesOf } from "./Devices";
import { raceOrder } from "./Race";
import { ratiosTo } from "./Radar";
import { scaleOf } from "./scale";
import { winCell } from "./Wins";

describe("the race", () => {
  it("is led by the fastest, and nobody leads without a result", () => {
    const rows = [row("slow", { avg_time: 2 }), row("idle", { tasks: 0, avg_time: 0 }), row("fast", { avg_time: 1 })];
    expect(raceOrder(rows).map((each) => each.name)).toEqual(["fast", "slow", "idle"]);
  });
});

describe("the radar", () => {
  it("shows multiples of the Oracle", () => {
    const ratios = ratiosTo(row("greedy", { avg_time: 3, avg_energy: 45, avg_cost: 1 }), row("oracle", { avg_time: 2, avg_cost: 0 }));
    expect(ratios.map((each) => each.ratio)).toEqual([1.5, 1.5, null]);
  });
});

describe("the win matrix", () => {
  const wins = {
    names: ["a", "b"],
    matrix: [
      [null, 0.6],
      [0.1, null],
    ],
    ties: [
      [null, 0.3],
      [0.3, null],
    ],
  };

  it("colours by wins less losses, so that ties are nobody's", () => {
    expect(winCell(wins, 0, 1)).toMatchObject({ value: 0.6, text: "60", shade: 0.5 });
    expect(winCell(wins, 1, 0)?.shade).toBe(-0.5);
    expect(winCell(wins, 0, 0)).toBeNull();
  });
});

describe("work per device", () => {
  it("is shared out of all the work", () => {
    expect(devicesOf({ cpu_busy: [2], gpu_busy: [5, 1] })).toEqual([
      { name: "cpu_0", busy: 2, share: 0.25 },
      { name: "gpu_0", busy: 5, share: 0.625 },
      { name: "gpu_1", busy: 1, share: 0.125 },
    ]);
  });
});

describe("a sorted table", () => {
  const columns = [{ key: "n", header: "N", numeric: true, value: (each: { n: number | null }) => each.n }];

  it("has empty values last both ways", () => {
    const rows = [{ n: 2 }, { n: null }, { n: 10 }];
    expect(inOrder(rows, columns, { key: "n", descending: false }).map((each) => each.n)).toEqual([2, 10, null]);
    expect(inOrder(rows, columns, { key: "n", descending: true }).map((each) => each.n)).toEqual([10, 2, null]);
  });
});

describe("time lost to the Oracle", () => {
  const series = (tasks: number[], total_time: number[]) => ({ tasks, total_time, total_energy: [], total_cost: [] });

  it("is counted on the same number of tasks, between known points", () => {
    const oracle = series([10, 30], [1, 5]);
    expect(pointsOf(series([10, 20, 40], [2, 6, 9]), "total_time", oracle)).toEqual([
      [10, 1],
      [20, 3],
      [40, 4],
    ]);
  });
});

describe("an axis", () => {
  it("has one unit, of which it holds at least two", () => {
    expect(scaleOf("time", 119).label(50)).toBe("50 s");
    expect(scaleOf("time", 1200)).toMatchObject({ divisor: 60 });
    expect(scaleOf("time", 1200).label(2.5)).toBe("2.5 min");
    expect(scaleOf("cost", 0.5).label(100_000)).toBe("100,000 µ$");
  });
});
