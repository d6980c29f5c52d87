import { describe, expect, it } from "vitest";
import { row } from "../live/samples";
import { ORACLE } from "../schedulers";
import { sortRows } from "../ui/Table";
import { axisUnit } from "./axisUnits";
import { fastestFirst } from "./Comparison";
import { pointsOf } from "./Cumulative";
import { layoutsOf } from "./layout";
import { ratiosTo } from "./Radar";
import { ARENA_WIDGETS } from "./registry";
import { winCell } from "./WinMatrix";
import { devicesOf } from "./WorkPerDevice";

describe("the comparison", () => {
  it("has the fastest first and schedulers without results last", () => {
    const rows = [row("slow", { avg_time: 2 }), row("idle", { tasks: 0, avg_time: 0 }), row("fast", { avg_time: 1 })];
    expect(fastestFirst(rows).map((each) => each.name)).toEqual(["fast", "slow", "idle"]);
  });
});

describe("the radar", () => {
  it("shows ratios to the Oracle", () => {
    const ratios = ratiosTo(
      row("greedy", { avg_time: 3, avg_energy: 45, avg_cost: 1 }),
      row(ORACLE, { avg_time: 2, avg_cost: 0 }),
    );
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

  it("is coloured by wins minus losses", () => {
    expect(winCell(wins, 0, 1)).toMatchObject({ value: 0.6, text: "60", shade: 0.5 });
    expect(winCell(wins, 1, 0)?.shade).toBe(-0.5);
    expect(winCell(wins, 0, 0)).toBeNull();
  });
});

describe("work per device", () => {
  it("has shares of the total", () => {
    expect(devicesOf({ cpu_busy: [2], gpu_busy: [5, 1] })).toEqual([
      { name: "cpu_0", busy: 2, share: 0.25 },
      { name: "gpu_0", busy: 5, share: 0.625 },
      { name: "gpu_1", busy: 1, share: 0.125 },
    ]);
  });
});

describe("a sorted table", () => {
  const columns = [{ key: "n", header: "N", numeric: true, value: (each: { n: number | null }) => each.n }];

  it("has empty values last in both directions", () => {
    const rows = [{ n: 2 }, { n: null }, { n: 10 }];
    expect(sortRows(rows, columns, { key: "n", descending: false }).map((each) => each.n)).toEqual([2, 10, null]);
    expect(sortRows(rows, columns, { key: "n", descending: true }).map((each) => each.n)).toEqual([10, 2, null]);
  });
});

describe("time above the Oracle", () => {
  const series = (tasks: number[], total_time: number[]) => ({ tasks, total_time, total_energy: [], total_cost: [] });

  it("compares equally many tasks, interpolated", () => {
    const oracle = series([10, 30], [1, 5]);
    expect(pointsOf(series([10, 20, 40], [2, 6, 9]), "time", oracle)).toEqual([
      [10, 1],
      [20, 3],
      [40, 4],
    ]);
  });
});

describe("an axis", () => {
  it("has the largest unit that fits twice", () => {
    expect(axisUnit("time", 119).label(50)).toBe("50 s");
    expect(axisUnit("time", 1200)).toMatchObject({ divisor: 60 });
    expect(axisUnit("time", 1200).label(2.5)).toBe("2.5 min");
    expect(axisUnit("cost", 0.5).label(100_000)).toBe("100,000 µ$");
  });
});

describe("the layouts", () => {
  const layouts = layoutsOf(ARENA_WIDGETS);

  it("place the widgets row by row, and a small one below another", () => {
    expect(layouts[1]).toMatchObject({
      columns: 12,
      places: {
        comparison: [0, 0, 5, 11],
        ranking: [5, 0, 3, 11],
        cumulative: [8, 0, 4, 11],
        utilization: [0, 11, 4, 9],
        wins: [4, 11, 4, 9],
        split: [8, 11, 4, 9],
        heatmap: [0, 20, 4, 9],
        scatter: [4, 20, 4, 9],
        correlation: [8, 20, 4, 9],
        decisions: [0, 29, 8, 13],
        sizes: [8, 29, 4, 6],
        log: [8, 35, 4, 7],
      },
    });
  });

  it("leave no hole", () => {
    for (const { columns, places } of layouts) {
      const bottom = Math.max(...Object.values(places).map(([, y, , h]) => y + h));
      const area = Object.values(places).reduce((sum, [, , w, h]) => sum + w * h, 0);
      expect(area).toBe(columns * bottom);
    }
  });
});
