import { useMemo } from "react";
import type { Analysis } from "../api/types";
import { count, megabytes, number, percent, shortCount } from "../format";
import { labelOf } from "../schedulers";
import { type Palette, usePalette } from "../theme";
import { axis, Chart, type ChartOption, type Column, Link, Table, tooltip, Widget } from "../ui";
import { openView } from "../url";
import { nothingYet, useAnalysis } from "./subject";

type Dot = Analysis["scatter"][number];

const COLUMNS: Column<Dot>[] = [
  {
    key: "task_id",
    header: "Task",
    numeric: true,
    value: (dot) => dot.task_id,
    show: (dot) => (
      <Link view="task" change={{ task: dot.task_id }} className="text-accent hover:underline">
        {count(dot.task_id)}
      </Link>
    ),
  },
  { key: "size", header: "Size", numeric: true, value: (dot) => dot.size, show: (dot) => number(dot.size) },
  { key: "compute_intensity", header: "Intensity", numeric: true, value: (dot) => dot.compute_intensity, show: (dot) => number(dot.compute_intensity) },
  { key: "memory_required", header: "Memory", numeric: true, value: (dot) => dot.memory_required, show: (dot) => megabytes(dot.memory_required) },
  { key: "gpu_fraction", header: "On GPU", numeric: true, value: (dot) => dot.gpu_fraction, show: (dot) => percent(dot.gpu_fraction) },
];

export function Scatter() {
  const source = useAnalysis();
  const palette = usePalette();
  const { data } = source;
  const option = useMemo(() => (data ? dots(data.scatter, palette) : {}), [data, palette]);
  return (
    <Widget
      id="scatter"
      title="The workload"
      hint={`Each dot is a task: size across, intensity up, area is memory, colour is where ${data ? labelOf(data.scheduler) : "it"} ran it. Pick one to see it.`}
      source={source}
      empty={nothingYet(data)}
      table={data ? <Table caption="The newest tasks" columns={COLUMNS} rows={data.scatter} rowKey={(dot) => String(dot.task_id)} /> : undefined}
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
        data: scatter.map((dot) => [dot.size, dot.compute_intensity, dot.gpu_fraction, dot.memory_required, dot.task_id]),
        symbolSize: (value: number[]) => 4 + Math.min(20, Math.sqrt(value[3] ?? 0) / 6),
        itemStyle: { opacity: 0.7 },
      },
    ],
  };
}
