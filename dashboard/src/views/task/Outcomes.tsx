import { useMemo } from "react";
import type { TaskDetail, TaskResult } from "../../api/types";
import type { Polled } from "../../api/usePolled";
import { dollars, joules, overOracle, percent, seconds } from "../../format";
import { labelOf } from "../../schedulers";
import { type Palette, usePalette } from "../../theme";
import { axis, Badge, Chart, type ChartOption, type Column, escapeHtml, SchedulerName, Table, Widget } from "../../ui";

type Source = Polled<TaskDetail>;

/** Fastest first; failed ones at the end. */
export function ranked(results: readonly TaskResult[]): TaskResult[] {
  return [...results].sort(
    (left, right) =>
      Number(left.status === "failed") - Number(right.status === "failed") ||
      left.actual_time - right.actual_time ||
      left.scheduler_name.localeCompare(right.scheduler_name),
  );
}

export function TimeSplit({ source }: { source: Source }) {
  const palette = usePalette();
  const results = source.data?.results;
  const rows = useMemo(() => ranked(results ?? []), [results]);
  const option = useMemo(() => bars(rows, palette), [rows, palette]);
  const columns: Column<TaskResult>[] = [
    { key: "scheduler", header: "Scheduler", value: (row) => row.scheduler_name, show: (row) => <SchedulerName name={row.scheduler_name} /> },
    duration("gpu_time", "On the GPU"),
    duration("cpu_time", "On the CPU"),
    duration("actual_time", "Execution"),
  ];
  return (
    <Widget
      id="task-split"
      title="Where the time went"
      hint="Execution time in its GPU and CPU parts. Shorter is better; nobody is shorter than the Oracle."
      source={source}
      empty={rows.length === 0 && "No scheduler has a result for it yet."}
      table={<Table caption="Time by device" columns={columns} rows={rows} rowKey={keyOf} rowAttributes={marks} />}
    >
      <Chart option={option} label="GPU and CPU time of every scheduler for this task" />
    </Widget>
  );
}

function bars(rows: TaskResult[], palette: Palette): ChartOption {
  const part = (name: string, key: "gpu_time" | "cpu_time", colour: string) => ({
    type: "bar" as const,
    name,
    stack: "time",
    barMaxWidth: 16,
    itemStyle: { color: colour, borderRadius: 3 },
    data: rows.map((row) => row[key]),
  });
  return {
    grid: { left: 8, right: 24, top: 8, bottom: 34, containLabel: true },
    legend: { bottom: 0, itemWidth: 12, itemHeight: 8, textStyle: { color: palette.muted, fontSize: 11 } },
    tooltip: {
      trigger: "axis",
      axisPointer: { type: "shadow" },
      formatter: (hovered: unknown) => {
        const row = rows[(hovered as { dataIndex: number }[])[0]?.dataIndex ?? -1];
        return row
          ? `<b>${escapeHtml(labelOf(row.scheduler_name))}</b><br>GPU ${seconds(row.gpu_time)}<br>CPU ${seconds(row.cpu_time)}<br>execution ${seconds(row.actual_time)}`
          : "";
      },
    },
    xAxis: {
      ...axis(palette),
      type: "value",
      axisLabel: { ...axis(palette).axisLabel, formatter: (value: number) => seconds(value) },
    },
    yAxis: {
      ...axis(palette),
      type: "category",
      inverse: true,
      data: rows.map((row) => labelOf(row.scheduler_name)),
      axisLabel: { color: palette.ink, fontSize: 12 },
    },
    series: [
      part("GPU part", "gpu_time", palette.gpu),
      part("CPU part", "cpu_time", palette.cpu),
    ],
  };
}

export function Outcomes({ source }: { source: Source }) {
  const rows = ranked(source.data?.results ?? []);
  return (
    <Widget
      id="task-results"
      title="What every scheduler decided"
      hint="Fastest first. Wait is time in the queues of its own cluster: a fast decision on a busy device may still end late."
      source={source}
      empty={rows.length === 0 && "No scheduler has a result for it yet."}
      scroll
    >
      <Table caption="Decisions and what they cost" columns={COLUMNS} rows={rows} rowKey={keyOf} rowAttributes={marks} />
    </Widget>
  );
}

export function Reasons({ source }: { source: Source }) {
  const rows = ranked(source.data?.results ?? []);
  return (
    <Widget
      id="task-reasons"
      title="Why it cost what it cost"
      hint="One sentence a decision: where the time, the energy and the money went."
      source={source}
      empty={rows.length === 0 && "No scheduler has a result for it yet."}
      scroll
    >
      <dl className="flex flex-col px-1">
        {rows.map((row) => (
          <div key={keyOf(row)} className="grid gap-x-4 gap-y-0.5 border-b border-line py-2 last:border-0 sm:grid-cols-[9rem_1fr]" {...marks(row)}>
            <dt>
              <SchedulerName name={row.scheduler_name} />
            </dt>
            <dd className="text-muted">{row.explanation}</dd>
          </div>
        ))}
      </dl>
    </Widget>
  );
}

function keyOf(row: TaskResult): string {
  return row.scheduler_name;
}

function marks(row: TaskResult): Record<string, string> {
  return { "data-scheduler": row.scheduler_name };
}

function duration(key: "actual_time" | "wait" | "turnaround" | "gpu_time" | "cpu_time", header: string, hint?: string): Column<TaskResult> {
  return {
    key,
    header,
    numeric: true,
    value: (row) => row[key],
    show: (row) => seconds(row[key]),
    ...(hint ? { hint } : {}),
  };
}

const COLUMNS: Column<TaskResult>[] = [
  { key: "scheduler", header: "Scheduler", value: (row) => row.scheduler_name, show: (row) => <SchedulerName name={row.scheduler_name} /> },
  { key: "gpu_fraction", header: "GPU share", numeric: true, value: (row) => row.gpu_fraction, show: (row) => percent(row.gpu_fraction, 0) },
  { key: "device", header: "Device", value: deviceOf },
  duration("actual_time", "Time", "execution time"),
  { key: "vs_oracle", header: "vs Oracle", numeric: true, value: (row) => row.vs_oracle, show: (row) => overOracle(row.vs_oracle) },
  duration("wait", "Wait", "time spent in queues"),
  duration("turnaround", "Turnaround", "from arrival to the end"),
  { key: "energy_consumption", header: "Energy", numeric: true, value: (row) => row.energy_consumption, show: (row) => joules(row.energy_consumption) },
  { key: "execution_cost", header: "Cost", numeric: true, value: (row) => row.execution_cost, show: (row) => dollars(row.execution_cost) },
  { key: "model_version", header: "Model", numeric: true, value: (row) => row.model_version, show: (row) => (row.model_version ? `v${row.model_version}` : "–") },
  {
    key: "explored",
    header: "Chosen",
    value: (row) => (row.explored ? "explored" : ""),
    show: (row) =>
      row.explored ? (
        <Badge tone="accent2" title="a choice made to learn from, not because it looked best">
          explored, p = {percent(row.probability)}
        </Badge>
      ) : (
        <span className="text-faint">as it knew best</span>
      ),
  },
  {
    key: "status",
    header: "Status",
    value: (row) => row.status,
    show: (row) => <Badge tone={row.status === "ok" ? "good" : "bad"}>{row.status}</Badge>,
  },
];

/** From the times, not the share: a part that does not fit the GPU may have run on the CPU. */
function deviceOf(row: TaskResult): string {
  if (row.gpu_time === 0) return "CPU";
  return row.cpu_time === 0 ? `GPU ${row.gpu}` : `GPU ${row.gpu} + CPU`;
}
