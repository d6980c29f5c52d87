import { useMemo } from "react";
import { count, dollars, joules, overOracle, percent, seconds } from "../format";
import { type ComparisonRow, useComparison } from "../live";
import { labelOf, ORACLE } from "../schedulers";
import { usePalette } from "../theme";
import { type Column, SchedulerName, Table, Widget } from "../ui";

const COLUMNS: Column<ComparisonRow>[] = [
  { key: "name", header: "Scheduler", value: (row) => labelOf(row.name), show: (row) => <SchedulerName name={row.name} /> },
  measure("avg_time", "Avg time", seconds),
  measure("vs_oracle", "vs Oracle", overOracle, "Total execution time over the Oracle's, on the same tasks"),
  measure("avg_energy", "Avg energy", joules),
  measure("avg_cost", "Avg cost", dollars),
  measure("avg_wait", "Avg wait", seconds, "In the queues of its own cluster"),
  measure("avg_turnaround", "Avg turnaround", seconds, "Wait and execution"),
  measure("makespan", "Makespan", seconds, "When its last task ended, in simulated time"),
  measure("gpu_share", "On GPU", percent, "Share of tasks that used a GPU"),
  measure("total_time", "Total time", seconds),
  measure("total_energy", "Total energy", joules),
  measure("total_cost", "Total cost", dollars),
  measure("tasks", "Tasks", count),
  measure("failed", "Failed", count),
  measure("model_version", "Model", (version) => (version ? `v${version}` : "–")),
];

type Measure = { [K in keyof ComparisonRow]: ComparisonRow[K] extends number | null ? K : never }[keyof ComparisonRow];

function measure(
  key: Measure,
  header: string,
  show: (value: number | null) => string,
  hint?: string,
): Column<ComparisonRow> {
  return {
    key,
    header,
    numeric: true,
    value: (row) => row[key],
    show: (row) => show(row[key]),
    ...(hint ? { hint } : {}),
  };
}

/** Fastest first; who has no result yet has no time to be compared by. */
export function raceOrder(rows: ComparisonRow[]): ComparisonRow[] {
  return [...rows].sort((left, right) => {
    if (!left.tasks || !right.tasks) return (left.tasks ? 0 : 1) - (right.tasks ? 0 : 1);
    return left.avg_time - right.avg_time || left.name.localeCompare(right.name);
  });
}

export function Race() {
  const rows = useComparison();
  return (
    <Widget
      id="race"
      title="The race"
      hint="Average execution time per task, fastest on top. The line is the Oracle, the floor: good is close to it."
      loading={rows.length === 0}
      table={
        <Table
          caption="Standing of every scheduler"
          columns={COLUMNS}
          rows={rows}
          rowKey={(row) => row.name}
          rowAttributes={(row) => ({ "data-scheduler": row.name })}
          sort={{ key: "avg_time", descending: false }}
        />
      }
      scroll
    >
      <Lanes rows={rows} />
    </Widget>
  );
}

function Lanes({ rows }: { rows: ComparisonRow[] }) {
  const order = useMemo(() => raceOrder(rows), [rows]);
  const longest = Math.max(...rows.map((row) => row.avg_time), 1e-12);
  const oracle = rows.find((row) => row.name === ORACLE && row.tasks > 0);
  const place = new Map(order.map((row, at) => [row.name, at]));
  return (
    <ol className="relative h-full min-h-56" style={{ minHeight: `${rows.length * 1.9}rem` }}>
      {rows.map((row) => (
        <Lane
          key={row.name}
          row={row}
          place={place.get(row.name) ?? 0}
          lanes={rows.length}
          width={row.avg_time / longest}
          oracle={oracle && row.name !== ORACLE ? oracle.avg_time / longest : null}
          ratio={ratioOf(row, oracle)}
        />
      ))}
    </ol>
  );
}

/** Exact on equal tasks; otherwise by averages, which is said by a ≈. */
function ratioOf(row: ComparisonRow, oracle: ComparisonRow | undefined): string {
  if (row.name === ORACLE) return "the floor";
  if (row.vs_oracle !== null) return overOracle(row.vs_oracle);
  if (!oracle || !row.tasks || oracle.avg_time === 0) return "";
  return `≈ ${overOracle(row.avg_time / oracle.avg_time)}`;
}

interface LaneProps {
  row: ComparisonRow;
  place: number;
  lanes: number;
  width: number;
  oracle: number | null;
  ratio: string;
}

function Lane({ row, place, lanes, width, oracle, ratio }: LaneProps) {
  const { colour, theme } = usePalette();
  const hue = colour(row.name);
  return (
    <li
      className="absolute inset-x-0 top-0 flex items-center gap-3 transition-transform duration-500"
      style={{ height: `${100 / lanes}%`, transform: `translateY(${place * 100}%)` }}
      data-scheduler={row.name}
      data-place={place + 1}
    >
      <span className="w-24 shrink-0 truncate text-[0.8125rem]">
        <SchedulerName name={row.name} />
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
        <span className="block text-[0.6875rem] text-muted">{ratio}</span>
      </span>
    </li>
  );
}
