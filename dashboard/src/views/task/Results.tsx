import { useMemo } from "react";
import type { Polled } from "../../api/polling";
import type { TaskDetail, TaskResult } from "../../api/types";
import { devicesLabel } from "../../devices";
import { dollars, joules, modelVersion, overOracle, percent, seconds } from "../../format";
import { labelOf } from "../../schedulers";
import { type Palette, usePalette } from "../../theme";
import {
  axis,
  Badge,
  Chart,
  type ChartOption,
  type Column,
  escapeHtml,
  numberColumn,
  SchedulerName,
  schedulerColumn,
  Table,
  Widget,
} from "../../ui";

type Source = Polled<TaskDetail>;

/** Fastest first; failed ones last. */
export function fastestFirst(results: readonly TaskResult[]): TaskResult[] {
  return [...results].sort(
    (left, right) =>
      Number(left.status === "failed") - Number(right.status === "failed") ||
      left.actual_time - right.actual_time ||
      left.scheduler_name.localeCompare(right.scheduler_name),
  );
}

export function TimeByDevice({ source }: { source: Source }) {
  const palette = usePalette();
  const results = source.data?.results;
  const rows = useMemo(() => fastestFirst(results ?? []), [results]);
  const option = useMemo(() => bars(rows, palette), [rows, palette]);
  const columns: Column<TaskResult>[] = [
    schedulerColumn((row) => row.scheduler_name),
    numberColumn("gpu_time", "Accelerator", seconds),
    numberColumn("cpu_time", "CPU", seconds),
    numberColumn("actual_time", "Execution", seconds),
  ];
  return (
    <Widget
      id="task-split"
      title="Time by device"
      caption="Execution time on the accelerator and on the CPU. Shorter is better; the Oracle is the shortest possible."
      source={source}
      empty={rows.length === 0 && "No scheduler has a result yet."}
      table={<Table caption="Time by device" columns={columns} rows={rows} rowKey={keyOf} rowAttributes={attributes} />}
    >
      <Chart option={option} label="Accelerator and CPU time of every scheduler for this task" />
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
          ? `<b>${escapeHtml(labelOf(row.scheduler_name))}</b><br>${escapeHtml(devicesLabel(row))}<br>accelerator ${seconds(row.gpu_time)}<br>CPU ${seconds(row.cpu_time)}<br>execution ${seconds(row.actual_time)}`
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
    series: [part("Accelerator", "gpu_time", palette.gpu), part("CPU", "cpu_time", palette.cpu)],
  };
}

export function Results({ source }: { source: Source }) {
  const rows = fastestFirst(source.data?.results ?? []);
  return (
    <Widget
      id="task-results"
      title="Decisions and results"
      caption="Fastest first. Wait is the time in the queues of the cluster: a short execution on a busy device can still end late."
      source={source}
      empty={rows.length === 0 && "No scheduler has a result yet."}
      scroll
    >
      <Table caption="Decisions and results" columns={COLUMNS} rows={rows} rowKey={keyOf} rowAttributes={attributes} />
    </Widget>
  );
}

export function Explanations({ source }: { source: Source }) {
  const rows = fastestFirst(source.data?.results ?? []);
  return (
    <Widget
      id="task-reasons"
      title="Explanations"
      caption="One sentence per decision: where time, energy and cost come from."
      source={source}
      empty={rows.length === 0 && "No scheduler has a result yet."}
      scroll
    >
      <dl className="flex flex-col px-1">
        {rows.map((row) => (
          <div
            key={keyOf(row)}
            className="grid gap-x-4 gap-y-0.5 border-b border-line py-2 last:border-0 sm:grid-cols-[9rem_1fr]"
            {...attributes(row)}
          >
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

function attributes(row: TaskResult): Record<string, string> {
  return { "data-scheduler": row.scheduler_name };
}

const COLUMNS: Column<TaskResult>[] = [
  schedulerColumn((row) => row.scheduler_name),
  numberColumn("gpu_fraction", "Accelerated", (share) => percent(share, 0), "Share sent to an accelerator"),
  { key: "device", header: "Devices", value: devicesLabel },
  numberColumn("actual_time", "Time", seconds, "Execution time"),
  numberColumn("vs_oracle", "vs Oracle", overOracle),
  numberColumn("wait", "Wait", seconds, "Time in queues"),
  numberColumn("turnaround", "Turnaround", seconds, "From arrival to the end"),
  numberColumn("energy_consumption", "Energy", joules),
  numberColumn("execution_cost", "Cost", dollars),
  numberColumn("model_version", "Model", modelVersion),
  {
    key: "explored",
    header: "Choice",
    value: (row) => (row.explored ? "explored" : ""),
    show: (row) =>
      row.explored ? (
        <Badge tone="accent2" title="A random choice to learn from">
          explored, p = {percent(row.probability)}
        </Badge>
      ) : (
        <span className="text-faint">best known</span>
      ),
  },
  {
    key: "status",
    header: "Status",
    value: (row) => row.status,
    show: (row) => <Badge tone={row.status === "ok" ? "good" : "bad"}>{row.status}</Badge>,
  },
];
