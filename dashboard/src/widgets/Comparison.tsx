import { useMemo } from "react";
import { useRunPolled } from "../api/runs";
import type { RunDetail } from "../api/types";
import { dollars, joules, modelVersion, number, overBound, overOracle, percent, ratio, seconds } from "../format";
import { type ComparisonRow, useComparison } from "../live";
import { ORACLE } from "../schedulers";
import { usePalette } from "../theme";
import {
  type Column,
  FailedBadge,
  failedColumn,
  numberColumn,
  SchedulerName,
  schedulerColumn,
  Table,
  Widget,
} from "../ui";
import type { ArenaWidget } from "./layout";

export const comparison: ArenaWidget = {
  id: "comparison",
  title: "Comparison by execution time",
  caption:
    "Average execution time per task, without waiting, fastest first. The vertical line is the Oracle: the best possible time.",
  component: Comparison,
  sizes: { wall: [5, 11], wide: [5, 11], medium: [6, 10] },
};

interface Row extends ComparisonRow {
  /** Makespan over the bound; null until the run is complete. */
  vs_bound: number | null;
}

const COLUMNS: Column<Row>[] = [
  schedulerColumn((row) => row.name),
  failedColumn(),
  numberColumn("avg_time", "Avg time", seconds),
  numberColumn(
    "vs_oracle",
    "vs Oracle",
    overOracle,
    "Total execution time compared with the Oracle, on the same tasks",
  ),
  numberColumn("avg_energy", "Avg energy", joules),
  numberColumn("avg_cost", "Avg cost", dollars),
  numberColumn("avg_wait", "Avg wait", seconds, "Time in the queues of its cluster"),
  numberColumn("avg_turnaround", "Avg turnaround", seconds, "Wait and execution"),
  numberColumn("turnaround_p95", "p95 turnaround", seconds, "95 % of the tasks were not slower"),
  numberColumn("avg_slowdown", "Slowdown", number, "Mean turnaround over the time on the fastest device"),
  numberColumn("makespan", "Makespan", seconds, "Simulated time at which the last task ended"),
  numberColumn("vs_bound", "Makespan / bound", overBound, "1×: no schedule is shorter. Known when the run is complete"),
  numberColumn("gpu_share", "Accelerated", percent, "Share of tasks that used an accelerator"),
  numberColumn("total_time", "Total time", seconds),
  numberColumn("total_energy", "Total energy", joules),
  numberColumn("total_cost", "Total cost", dollars),
  numberColumn("tasks", "Tasks"),
  numberColumn("model_version", "Model", modelVersion),
];

/** Fastest first; schedulers without a result last. */
export function fastestFirst(rows: ComparisonRow[]): ComparisonRow[] {
  const time = (row: ComparisonRow) => (row.tasks > 0 ? (row.avg_time ?? Number.MAX_VALUE) : Number.MAX_VALUE);
  return [...rows].sort((left, right) => time(left) - time(right) || left.name.localeCompare(right.name));
}

export function Comparison() {
  const rows = useComparison();
  const bound = useRunPolled<RunDetail>("").data?.bound ?? null;
  return (
    <Widget
      {...comparison}
      loading={rows.length === 0}
      table={
        <Table
          caption="Totals and averages of every scheduler"
          columns={COLUMNS}
          rows={rows.map((row) => ({ ...row, vs_bound: ratio(row.makespan, bound) }))}
          rowKey={(row) => row.name}
          rowAttributes={(row) => ({ "data-scheduler": row.name })}
          sort={{ key: "avg_time", descending: false }}
        />
      }
      scroll
    >
      <Bars rows={rows} />
    </Widget>
  );
}

function Bars({ rows }: { rows: ComparisonRow[] }) {
  const order = useMemo(() => fastestFirst(rows), [rows]);
  const longest = Math.max(...rows.map((row) => row.avg_time ?? 0), 1e-12);
  const oracle = rows.find((row) => row.name === ORACLE && row.tasks > 0);
  const place = new Map(order.map((row, at) => [row.name, at]));
  return (
    <ol className="relative h-full min-h-56" style={{ minHeight: `${rows.length * 1.9}rem` }}>
      {rows.map((row) => (
        <Bar
          key={row.name}
          row={row}
          place={place.get(row.name) ?? 0}
          bars={rows.length}
          width={(row.avg_time ?? 0) / longest}
          oracle={oracle && row.name !== ORACLE ? (oracle.avg_time ?? 0) / longest : null}
          note={noteOf(row, oracle)}
        />
      ))}
    </ol>
  );
}

/** Exact on the same tasks; otherwise from the averages, marked with ≈. */
function noteOf(row: ComparisonRow, oracle: ComparisonRow | undefined): string {
  if (row.name === ORACLE) return "best possible";
  if (row.vs_oracle !== null) return overOracle(row.vs_oracle);
  const estimate = row.tasks > 0 ? ratio(row.avg_time, oracle?.avg_time) : null;
  return estimate === null ? "" : `≈ ${overOracle(estimate)}`;
}

interface BarProps {
  row: ComparisonRow;
  place: number;
  bars: number;
  width: number;
  oracle: number | null;
  note: string;
}

function Bar({ row, place, bars, width, oracle, note }: BarProps) {
  const { colour, theme } = usePalette();
  const hue = colour(row.name);
  return (
    <li
      className="absolute inset-x-0 top-0 flex items-center gap-3 transition-transform duration-500"
      style={{ height: `${100 / bars}%`, transform: `translateY(${place * 100}%)` }}
      data-scheduler={row.name}
      data-place={place + 1}
    >
      <span className="flex w-24 shrink-0 flex-col items-start text-[0.8125rem]">
        <SchedulerName name={row.name} />
        <FailedBadge failed={row.failed} tasks={row.tasks} />
      </span>
      <span className="relative h-[46%] max-h-6 min-w-0 flex-1 rounded-full bg-sunken">
        <span
          className="absolute inset-y-0 left-0 rounded-full"
          style={{
            width: `${Math.max(0.6, width * 100).toFixed(1)}%`,
            background: `linear-gradient(90deg, color-mix(in oklab, ${hue} 35%, transparent), ${hue})`,
            boxShadow: theme === "dark" ? `0 0 18px -4px ${hue}` : "none",
          }}
        />
        {oracle !== null && (
          <span
            aria-hidden
            className="absolute -inset-y-1 w-px"
            style={{ left: `${(oracle * 100).toFixed(1)}%`, background: colour(ORACLE) }}
          />
        )}
      </span>
      <span className="num w-19 shrink-0 text-right text-[0.8125rem] leading-tight">
        <span className="font-semibold" data-field="avg_time" data-value={row.avg_time}>
          {row.tasks ? seconds(row.avg_time) : "waiting"}
        </span>
        <span className="block text-[0.6875rem] text-muted">{note}</span>
      </span>
    </li>
  );
}
