import { describe, expect, it } from "vitest";
import { row, track } from "../live/samples";
import { ORACLE } from "../schedulers";
import { sortRows } from "../ui/Table";
import { axisUnit } from "./axisUnits";
import { pointsOf } from "./Cumulative";
import { mostUsed, pairOf } from "./Heatmap";
import { layoutsOf } from "./layout";
import { groupsOf, workOf } from "./meters";
import { placed, rowsOf } from "./QueueLength";
import { ratiosTo } from "./Radar";
import { byScore } from "./Ranking";
import { scaleEnd } from "./raceScale";
import { ARENA_WIDGETS } from "./registry";
import { winCell } from "./WinMatrix";

describe("the bars of the race", () => {
  const idle = row("idle", { tasks: 0, avg_time: 0, avg_turnaround: 0 });

  it("end with the longest turnaround when all are alike", () => {
    const rows = [row("a", { avg_turnaround: 3 }), row("b", { avg_time: 1, avg_turnaround: 7 }), idle];
    expect(scaleEnd(rows, "turnaround")).toBe(7);
  });

  it("are cut beyond the longest that is within ten times the shortest", () => {
    const rows = [2, 12, 21, 600].map((avg_turnaround) => row(`${avg_turnaround}`, { avg_turnaround }));
    expect(scaleEnd([...rows, idle], "turnaround")).toBe(15);
  });

  it("leave room to see that a cut bar is far longer than the only complete one", () => {
    const rows = [row("a", { avg_turnaround: 2 }), row("b", { avg_turnaround: 600 }), idle];
    expect(scaleEnd(rows, "turnaround")).toBe(6);
  });

  it("are never cut in their execution time", () => {
    const rows = [row("a", { avg_time: 1, avg_turnaround: 1 }), row("b", { avg_time: 15, avg_turnaround: 600 })];
    expect(scaleEnd(rows, "turnaround")).toBe(15);
  });

  it("leave half of the chart to the execution time when they are sorted by it", () => {
    const rows = [row("a", { avg_time: 1, avg_turnaround: 2 }), row("b", { avg_time: 4, avg_turnaround: 600 })];
    expect(scaleEnd(rows, "time")).toBe(8);
  });
});

describe("the ranking", () => {
  it("is in the order of the scores; a reference has no rank", () => {
    const rows = [
      row("second", { score: 1.5, rank: 2 }),
      row(ORACLE, { score: 1.2, rank: null }),
      row("first", { score: 1.1, rank: 1 }),
    ];
    expect(byScore(rows).map((each) => each.name)).toEqual(["first", ORACLE, "second"]);
  });
});

describe("the radar", () => {
  it("shows ratios to the Oracle", () => {
    const ratios = ratiosTo(
      row("greedy", { avg_turnaround: 1, avg_time: 3, avg_energy: 45, avg_cost: 1 }),
      row(ORACLE, { avg_turnaround: 4, avg_time: 2, avg_cost: 0 }),
    );
    expect(ratios.map((each) => each.ratio)).toEqual([0.25, 1.5, 1.5, null]);
  });
});

describe("the win matrix", () => {
  const wins = {
    by: "turnaround" as const,
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

/** Two nodes: a has two GPUs and a CPU, b has a meter for its 4 CPUs. */
const METERS = [
  { name: "a/gpu_0", type: "gpu", node: "a", devices: 1 },
  { name: "a/gpu_1", type: "gpu", node: "a", devices: 1 },
  { name: "a/cpu_0", type: "cpu", node: "a", devices: 1 },
  { name: "b/cpu", type: "cpu", node: "b", devices: 4 },
];

describe("work per device", () => {
  const busy = [5, 1, 2, 8];

  it("has shares of the total", () => {
    expect(workOf(METERS, busy, "device")).toMatchObject([
      { key: "a/gpu_0", label: "a GPU 0", busy: 5, share: 0.3125 },
      { key: "a/gpu_1", busy: 1, share: 0.0625 },
      { key: "a/cpu_0", busy: 2, share: 0.125 },
      { key: "b/cpu", label: "b CPU", devices: 4, busy: 8, busy_per_device: 2, share: 0.5 },
    ]);
  });

  it("is added up by type, and the mean is that of a device", () => {
    expect(workOf(METERS, busy, "type")).toMatchObject([
      { key: "gpu", label: "GPU", devices: 2, busy: 6, busy_per_device: 3, share: 0.375 },
      { key: "cpu", label: "CPU", devices: 5, busy: 10, busy_per_device: 2, share: 0.625 },
    ]);
  });
});

describe("utilisation", () => {
  const shares: [number, number[]][] = [
    [0.5, [0, 1]],
    [1, [1, 1]],
    [0, [0, 0]],
    [0.25, [0.5, 0]],
  ];
  const meters = METERS.map((meter, at) => ({
    ...meter,
    utilization: shares[at]?.[0] ?? 0,
    busy: shares[at]?.[1] ?? [],
  }));

  it("of a type is weighted by the number of devices", () => {
    expect(groupsOf(meters, "type")).toMatchObject([
      { key: "gpu", devices: 2, utilization: 0.75, busy: [0.5, 1] },
      { key: "cpu", devices: 5, utilization: 0.2, busy: [0.4, 0] },
    ]);
  });

  it("of a node has all its types", () => {
    expect(groupsOf(meters, "node")).toMatchObject([
      { key: "a", label: "a", devices: 3, utilization: 0.5 },
      { key: "b", devices: 4, utilization: 0.25 },
    ]);
  });

  it("numbers the devices of a type for their shades", () => {
    expect(groupsOf(meters, "device").map((group) => group.position)).toEqual([0, 1, 0, 1]);
  });
});

describe("the heat map", () => {
  it("shows the share where there is one type of each kind", () => {
    expect(pairOf(["cpu", "gpu"], [])).toEqual(["gpu", "cpu"]);
    expect(pairOf(["a100", "t4", "cpu"], [])).toBeNull();
    expect(pairOf(["a100", "t4"], [])).toBeNull();
    expect(pairOf(["cpu"], [])).toBeNull();
  });

  it("takes the colour of the type that most tasks ran on", () => {
    expect(mostUsed([0.2, 0.5, 0.3])).toBe(1);
    expect(mostUsed([0.5, 0.5])).toBe(0);
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
  it("compares equally many tasks, interpolated", () => {
    const oracle = track([10, 30], [1, 5]);
    expect(pointsOf(track([10, 20, 40], [2, 6, 9]), "time", oracle)).toEqual([
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
        timeline: [4, 11, 8, 9],
        queues: [0, 20, 4, 9],
        wins: [4, 20, 4, 9],
        split: [8, 20, 4, 9],
        heatmap: [0, 29, 4, 9],
        scatter: [4, 29, 4, 9],
        correlation: [8, 29, 4, 9],
        decisions: [0, 38, 8, 13],
        sizes: [8, 38, 4, 6],
        log: [8, 44, 4, 7],
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

describe("queue lengths", () => {
  const track = (unfinished: number[]) => ({ time: [0, 1], unfinished, waiting: [0, 1], exact: true });

  it("have the longest queue first", () => {
    const queues = { run: "r", schedulers: { a: track([2, 4]), b: track([30, 9]) } };
    expect(rowsOf(queues, ["a", "b", "c"])).toEqual([
      { name: "b", now: 9, mean: 19.5, most: 30, waiting: 1 },
      { name: "a", now: 4, mean: 3, most: 4, waiting: 1 },
    ]);
  });

  it("have a place for an empty queue on a logarithmic axis", () => {
    expect([placed(0, "log"), placed(3, "log"), placed(0, "linear")]).toEqual([0.5, 3, 0]);
  });
});
