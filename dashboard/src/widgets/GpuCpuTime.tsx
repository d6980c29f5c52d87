import { useMemo } from "react";
import type { Analysis } from "../api/types";
import { percent, seconds } from "../format";
import { labelOf } from "../schedulers";
import { type Palette, usePalette } from "../theme";
import {
  axis,
  Chart,
  type ChartOption,
  type Column,
  escapeHtml,
  numberColumn,
  schedulerColumn,
  Table,
  tooltip,
  Widget,
} from "../ui";
import { axisUnit } from "./axisUnits";
import type { ArenaWidget } from "./layout";
import { noTasksYet, useAnalysis } from "./selection";

export const gpuCpuTime: ArenaWidget = {
  id: "split",
  title: "GPU and CPU time",
  caption: "Busy seconds of GPUs and CPU for the newest tasks. Shorter is better.",
  component: GpuCpuTime,
  sizes: { wall: [4, 10], wide: [4, 9], medium: [3, 9] },
};

interface Row {
  name: string;
  gpu_time: number;
  cpu_time: number;
  gpu_tasks: number;
  tasks: number;
}

const COLUMNS: Column<Row>[] = [
  schedulerColumn((row) => row.name),
  numberColumn("gpu_time", "GPU time", seconds),
  numberColumn("cpu_time", "CPU time", seconds),
  numberColumn("gpu_tasks", "Tasks on GPU"),
  numberColumn("tasks", "Tasks"),
];

export function GpuCpuTime({ names }: { names?: string[] }) {
  const source = useAnalysis();
  const palette = usePalette();
  const { data } = source;
  const rows = useMemo(() => (data ? rowsOf(data.split, names) : []), [data, names]);
  const option = useMemo(() => bars(rows, palette), [rows, palette]);
  return (
    <Widget
      {...gpuCpuTime}
      source={source}
      empty={noTasksYet(data)}
      table={
        <Table
          caption="GPU and CPU time"
          columns={COLUMNS}
          rows={rows}
          rowKey={(row) => row.name}
          rowAttributes={(row) => ({ "data-scheduler": row.name })}
        />
      }
    >
      <Chart option={option} label="GPU and CPU seconds of every scheduler" />
    </Widget>
  );
}

function rowsOf(split: Analysis["split"], names?: string[]): Row[] {
  return Object.entries(split)
    .filter(([name]) => !names || names.includes(name))
    .map(([name, part]) => ({ name, ...part }))
    .sort((left, right) => right.gpu_time + right.cpu_time - left.gpu_time - left.cpu_time);
}

function bars(rows: Row[], palette: Palette): ChartOption {
  const unit = axisUnit("time", Math.max(0, ...rows.map((row) => row.gpu_time + row.cpu_time)));
  const series = (key: "gpu_time" | "cpu_time", name: string, colour: string) => ({
    id: key,
    name,
    type: "bar" as const,
    stack: "time",
    color: colour,
    barMaxWidth: 16,
    data: rows.map((row) => row[key] / unit.divisor),
    emphasis: { disabled: true },
  });
  return {
    grid: { left: 8, right: 14, top: 24, bottom: 2, containLabel: true },
    legend: {
      top: 0,
      left: 4,
      icon: "roundRect",
      itemWidth: 10,
      itemHeight: 10,
      textStyle: { color: palette.muted, fontSize: palette.small },
    },
    tooltip: {
      ...tooltip(palette),
      trigger: "axis",
      axisPointer: { type: "shadow" },
      formatter: (points: unknown) => {
        const row = rows[(points as { dataIndex: number }[])[0]?.dataIndex ?? 0];
        if (!row) return "";
        const share = row.tasks ? row.gpu_tasks / row.tasks : 0;
        return `<b>${escapeHtml(labelOf(row.name))}</b><br>GPU ${seconds(row.gpu_time)} · CPU ${seconds(row.cpu_time)}<br>${percent(share)} of tasks used a GPU`;
      },
    },
    xAxis: {
      ...axis(palette),
      type: "value",
      splitNumber: 3,
      axisLabel: { ...axis(palette).axisLabel, formatter: unit.label },
    },
    yAxis: {
      ...axis(palette),
      type: "category",
      data: rows.map((row) => labelOf(row.name)),
      axisLabel: { ...axis(palette).axisLabel, hideOverlap: false, interval: 0 },
    },
    series: [series("gpu_time", "GPU", palette.gpu), series("cpu_time", "CPU", palette.cpu)],
  };
}
