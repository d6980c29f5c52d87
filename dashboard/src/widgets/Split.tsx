import { useMemo } from "react";
import type { Analysis } from "../api/types";
import { count, percent, seconds } from "../format";
import { labelOf } from "../schedulers";
import { type Palette, usePalette } from "../theme";
import { axis, Chart, type ChartOption, type Column, escapeHtml, SchedulerName, Table, tooltip, Widget } from "../ui";
import { scaleOf } from "./scale";
import { nothingYet, useAnalysis } from "./subject";

interface Row {
  name: string;
  gpu_time: number;
  cpu_time: number;
  gpu_tasks: number;
  tasks: number;
}

const COLUMNS: Column<Row>[] = [
  { key: "name", header: "Scheduler", value: (row) => row.name, show: (row) => <SchedulerName name={row.name} /> },
  { key: "gpu_time", header: "GPU time", numeric: true, value: (row) => row.gpu_time, show: (row) => seconds(row.gpu_time) },
  { key: "cpu_time", header: "CPU time", numeric: true, value: (row) => row.cpu_time, show: (row) => seconds(row.cpu_time) },
  { key: "gpu_tasks", header: "Tasks on GPU", numeric: true, value: (row) => row.gpu_tasks, show: (row) => count(row.gpu_tasks) },
  { key: "tasks", header: "Tasks", numeric: true, value: (row) => row.tasks, show: (row) => count(row.tasks) },
];

export function Split({ names }: { names?: string[] }) {
  const source = useAnalysis();
  const palette = usePalette();
  const { data } = source;
  const rows = useMemo(() => (data ? rowsOf(data.split, names) : []), [data, names]);
  const option = useMemo(() => bars(rows, palette), [rows, palette]);
  return (
    <Widget
      id="split"
      title="GPU and CPU time"
      hint="Seconds of work the newest tasks put on GPUs and on the CPU. Good is a short bar; its split is the policy's habit."
      source={source}
      empty={nothingYet(data)}
      table={<Table caption="GPU and CPU time" columns={COLUMNS} rows={rows} rowKey={(row) => row.name} rowAttributes={(row) => ({ "data-scheduler": row.name })} />}
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
  const scale = scaleOf("time", Math.max(0, ...rows.map((row) => row.gpu_time + row.cpu_time)));
  const series = (key: "gpu_time" | "cpu_time", name: string, colour: string) => ({
    id: key,
    name,
    type: "bar" as const,
    stack: "time",
    color: colour,
    barMaxWidth: 16,
    data: rows.map((row) => row[key] / scale.divisor),
    emphasis: { disabled: true },
  });
  return {
    grid: { left: 8, right: 14, top: 24, bottom: 2, containLabel: true },
    legend: { top: 0, left: 4, icon: "roundRect", itemWidth: 10, itemHeight: 10, textStyle: { color: palette.muted, fontSize: palette.small } },
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
    xAxis: { ...axis(palette), type: "value", splitNumber: 3, axisLabel: { ...axis(palette).axisLabel, formatter: scale.label } },
    yAxis: { ...axis(palette), type: "category", data: rows.map((row) => labelOf(row.name)), axisLabel: { ...axis(palette).axisLabel, hideOverlap: false, interval: 0 } },
    series: [series("gpu_time", "GPU", palette.gpu), series("cpu_time", "CPU", palette.cpu)],
  };
}
