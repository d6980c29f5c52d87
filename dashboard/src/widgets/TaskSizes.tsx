import { useMemo } from "react";
import type { Analysis } from "../api/types";
import { count, number } from "../format";
import { type Palette, usePalette } from "../theme";
import { axis, Chart, type ChartOption, type Column, numberColumn, Table, tooltip, Widget } from "../ui";
import type { ArenaWidget } from "./layout";
import { noTasksYet, useAnalysis } from "./selection";

export const taskSizes: ArenaWidget = {
  id: "sizes",
  title: "Task sizes",
  caption: "The number of tasks of each size, on a logarithmic scale. A few large tasks decide the comparison.",
  component: TaskSizes,
  sizes: { wall: [4, 6], wide: [4, 6], medium: [3, 7] },
};

interface Bin {
  from: number;
  to: number;
  tasks: number;
}

const COLUMNS: Column<Bin>[] = [
  numberColumn("from", "From size", number),
  numberColumn("to", "To size", number),
  numberColumn("tasks", "Tasks"),
];

export function TaskSizes() {
  const source = useAnalysis();
  const palette = usePalette();
  const bins = useMemo(() => (source.data ? binsOf(source.data.sizes) : []), [source.data]);
  const option = useMemo(() => bars(bins, palette), [bins, palette]);
  return (
    <Widget
      {...taskSizes}
      source={source}
      empty={noTasksYet(source.data)}
      table={<Table caption="Tasks by size" columns={COLUMNS} rows={bins} rowKey={(row) => String(row.from)} />}
    >
      <Chart option={option} label={`Histogram of task sizes in ${bins.length} bins`} />
    </Widget>
  );
}

function binsOf(sizes: Analysis["sizes"]): Bin[] {
  return sizes.counts.map((tasks, at) => ({ from: sizes.edges[at] ?? 0, to: sizes.edges[at + 1] ?? 0, tasks }));
}

function bars(bins: Bin[], palette: Palette): ChartOption {
  return {
    grid: { left: 8, right: 12, top: 10, bottom: 4, containLabel: true },
    tooltip: {
      ...tooltip(palette),
      trigger: "axis",
      axisPointer: { type: "shadow" },
      formatter: (points: unknown) => {
        const bin = bins[(points as { dataIndex: number }[])[0]?.dataIndex ?? 0];
        return bin ? `size ${number(bin.from)} to ${number(bin.to)}<br><b>${count(bin.tasks)} tasks</b>` : "";
      },
    },
    xAxis: { ...axis(palette), type: "category", data: bins.map((bin) => number(Math.sqrt(bin.from * bin.to), 2)) },
    yAxis: { ...axis(palette), type: "value", splitNumber: 3, minInterval: 1 },
    series: [
      {
        id: "sizes",
        type: "bar",
        data: bins.map((bin) => bin.tasks),
        barCategoryGap: "14%",
        itemStyle: {
          borderRadius: [3, 3, 0, 0],
          color: {
            type: "linear",
            x: 0,
            y: 0,
            x2: 0,
            y2: 1,
            colorStops: [
              { offset: 0, color: palette.accent2 },
              { offset: 1, color: palette.accent },
            ],
          },
        },
      },
    ],
  };
}
