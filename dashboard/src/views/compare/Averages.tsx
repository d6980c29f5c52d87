import type { ReactNode } from "react";
import type { Polled } from "../../api/polling";
import { count, dollars, joules, number, overBound, overOracle, percent, seconds } from "../../format";
import { type Column, FailedBadge, SchedulerName, schedulerColumn, Table, Widget } from "../../ui";
import { type Change, oracleChanges } from "./differences";
import type { TotalsAt } from "./sameTasks";

/** Less is better in every column. */
export function Difference({ share }: { share: number | null }) {
  if (share === null) return <span className="text-faint">–</span>;
  if (Math.abs(share) < 0.0005) return <span className="text-muted">same</span>;
  const tone = share < 0 ? "text-good" : "text-bad";
  return (
    <span className={tone}>
      {share > 0 ? "+" : ""}
      {percent(share)}
    </span>
  );
}

export function Averages({ source, rows }: { source: Polled<unknown>; rows: Change[] }) {
  const pair = (
    key: "avg_time" | "avg_energy" | "avg_cost" | "avg_wait" | "avg_turnaround" | "turnaround_p95" | "avg_slowdown",
    title: string,
    format: (value: number | null | undefined) => string,
  ): Column<Change>[] => [
    side(`${key}_a`, `${title} A`, (row) => row.a?.[key], format),
    side(`${key}_b`, `${title} B`, (row) => row.b?.[key], format),
  ];
  const columns: Column<Change>[] = [
    schedulerColumn((row) => row.name, true),
    side("tasks", "After tasks", (row) => row.a?.tasks ?? row.b?.tasks, count),
    failed("failed_a", "Failed A", (row) => row.a),
    failed("failed_b", "Failed B", (row) => row.b),
    ...pair("avg_turnaround", "Turnaround", seconds),
    change("turnaround", "Δ turnaround"),
    ...pair("turnaround_p95", "p95 turnaround", seconds),
    ...pair("avg_wait", "Wait", seconds),
    ...pair("avg_time", "Execution", seconds),
    change("time", "Δ execution"),
    side("vs_oracle_a", "vs Oracle A", (row) => row.a?.vs_oracle, overOracle),
    side("vs_oracle_b", "vs Oracle B", (row) => row.b?.vs_oracle, overOracle),
    ...pair("avg_energy", "Energy", joules),
    change("energy", "Δ energy"),
    ...pair("avg_cost", "Cost", dollars),
    change("cost", "Δ cost"),
    ...pair("avg_slowdown", "Slowdown", number),
    side("vs_bound_a", "Makespan / bound A", (row) => row.a?.vs_bound, overBound),
    side("vs_bound_b", "Makespan / bound B", (row) => row.b?.vs_bound, overBound),
  ];
  return (
    <Widget
      id="compare-averages"
      title="Averages per task"
      caption="Both after equally many tasks. Δ is B compared with A; green is less, and better. If the workloads differ, compare “vs Oracle”, which is about execution time."
      source={source}
      empty={rows.length === 0 && "Neither run has results yet."}
      scroll
    >
      <Table
        caption="Averages of both runs"
        columns={columns}
        rows={rows}
        rowKey={(row) => row.name}
        rowAttributes={(row) => ({ "data-scheduler": row.name })}
      />
    </Widget>
  );
}

function side(
  key: string,
  header: string,
  of: (row: Change) => number | null | undefined,
  format: (value: number | null | undefined) => string,
): Column<Change> {
  return { key, header, numeric: true, value: (row) => of(row) ?? null, show: (row) => format(of(row)) };
}

function failed(key: string, header: string, of: (row: Change) => TotalsAt | null): Column<Change> {
  const show = (row: Change) => {
    const totals = of(row);
    if (!totals) return "–";
    return totals.failed ? <FailedBadge failed={totals.failed} tasks={totals.tasks} /> : "0";
  };
  return { key, header, numeric: true, value: (row) => of(row)?.failed ?? null, show };
}

function change(key: "turnaround" | "time" | "energy" | "cost", header: string): Column<Change> {
  return { key, header, numeric: true, value: (row) => row[key], show: (row) => <Difference share={row[key]} /> };
}

export function OracleChanges({ source, rows }: { source: Polled<unknown>; rows: Change[] }) {
  const { closer, further } = oracleChanges(rows);
  const comparable = rows.some((row) => row.vsOracle !== null);
  return (
    <Widget
      id="compare-movers"
      title="Distance to the Oracle"
      caption="Execution time compared with the Oracle, A → B. Lower is better, also when the tasks differ."
      source={source}
      empty={!comparable && "Both runs need the Oracle."}
      scroll
    >
      <div className="grid gap-4 px-1 sm:grid-cols-2">
        <Group title="Closer to the Oracle in B" rows={closer} tone="text-good" />
        <Group title="Further from the Oracle in B" rows={further} tone="text-bad" />
      </div>
    </Widget>
  );
}

function Group({ title, rows, tone }: { title: string; rows: Change[]; tone: string }): ReactNode {
  return (
    <div>
      <h3 className={`pb-1 text-xs font-medium ${tone}`}>{title}</h3>
      {rows.length === 0 && <p className="text-xs text-muted">None.</p>}
      <ul>
        {rows.map((row) => (
          <li
            key={row.name}
            className="flex items-center justify-between gap-3 border-b border-line py-1.5 last:border-0"
          >
            <SchedulerName name={row.name} plain />
            <span className="num text-xs whitespace-nowrap text-muted">{ratios(row.a, row.b)}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

function ratios(a: TotalsAt | null, b: TotalsAt | null): string {
  return `${overOracle(a?.vs_oracle)} → ${overOracle(b?.vs_oracle)}`;
}
