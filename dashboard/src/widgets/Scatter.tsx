import { useMemo } from "react";
import type { Analysis } from "../api/types";
import { count, megabytes, number, percent, shortCount } from "../format";
import { type Palette, usePalette } from "../theme";
import { axis, Chart, type ChartOption, type Column, numberColumn, Table, taskColumn, tooltip, Widget } from "../ui";
import { openView } from "../url";
import type { ArenaWidget } from "./layout";
import { noTasksYet, useAnalysis } from "./selection";

type Dot = Analysis["scatter"][number];

export const scatter: ArenaWidget = {
  id: "scatter",
  title: "Workload",
  caption: "Each dot is a task: size, intensity, memory (area) and device (colour). Click a dot for its details.",
  component: Scatter,
  sizes: { wall: [4, 10], wide: [4, 9], medium: [3, 9] },
};

const COLUMNS: Column<Dot>[] = [
  taskColumn(),
  numberColumn("size", "Size", number),
  numberColumn("compute_intensity", "Intensity", number),
  numberColumn("memory_required", "Memory", megabytes),
  numberColumn("gpu_fraction", "On GPU", percent),
];

export function Scatter() {
  const source = useAnalysis();
  const palette = usePalette();
  const { data } = source;
  const option = useMemo(() => (data ? dots(data.scatter, palette) : {}), [data, palette]);
  return (
    <Widget
      {...scatter}
      source={source}
      empty={noTasksYet(data)}
      table={
        data ? (
          <Table
            caption="The newest tasks"
            columns={COLUMNS}
            rows={data.scatter}
            rowKey={(dot) => String(dot.task_id)}
          />
        ) : undefined
      }
    >
      <Chart
        option={option}
        label={`${data?.scatter.length ?? 0} tasks by size and intensity`}
        onPick={({ data: picked }) => openView("task", { task: (picked as number[])[4] })}
      />
    </Widget>
  );
}

function dots(scatter: Dot[], palette: Palette): ChartOption {
  return {
    grid: { left: 8, right: 14, top: 12, bottom: 16, containLabel: true },
    tooltip: {
      ...tooltip(palette),
      formatter: (point: unknown) => {
        const [size, intensity, share, memory, id] = (point as { data: number[] }).data;
        return `task ${count(id)}<br>size ${number(size)} · intensity ${number(intensity)} · ${megabytes(memory)}<br><b>${percent(share)} on GPU</b>`;
      },
    },
    xAxis: {
      ...axis(palette),
      type: "log",
      min: "dataMin",
      max: "dataMax",
      name: "size",
      nameLocation: "middle",
      nameGap: 22,
      axisLabel: { ...axis(palette).axisLabel, formatter: (value: number) => shortCount(value) },
    },
    yAxis: { ...axis(palette), type: "value", min: 0, max: 1, interval: 0.25 },
    visualMap: { show: false, min: 0, max: 1, dimension: 2, inRange: { color: [palette.cpu, palette.gpu] } },
    series: [
      {
        id: "tasks",
        type: "scatter",
        data: scatter.map((dot) => [
          dot.size,
          dot.compute_intensity,
          dot.gpu_fraction,
          dot.memory_required,
          dot.task_id,
        ]),
        symbolSize: (value: number[]) => 4 + Math.min(20, Math.sqrt(value[3] ?? 0) / 6),
        itemStyle: { opacity: 0.7 },
      },
    ],
  };
}
