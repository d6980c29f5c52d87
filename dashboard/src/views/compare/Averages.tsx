import type { ReactNode } from "react";
import { dollars, joules, overOracle, percent, seconds } from "../../format";
import type { Standing } from "../../api/types";
import type { Polled } from "../../api/usePolled";
import { type Column, SchedulerName, Table, Widget } from "../../ui";
import { type Change, verdict } from "./differences";

/** Less is better in everything that is compared here. */
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
    key: "avg_time" | "avg_energy" | "avg_cost" | "avg_wait",
    title: string,
    format: (value: number | null | undefined) => string,
  ): Column<Change>[] => [
    side(`${key}_a`, `${title} A`, (row) => row.a?.[key], format),
    side(`${key}_b`, `${title} B`, (row) => row.b?.[key], format),
  ];
  const columns: Column<Change>[] = [
    { key: "name", header: "Scheduler", value: (row) => row.name, show: (row) => <SchedulerName name={row.name} plain /> },
    ...pair("avg_time", "Time", seconds),
    change("time", "Δ time"),
    ...pair("avg_energy", "Energy", joules),
    change("energy", "Δ energy"),
    ...pair("avg_cost", "Cost", dollars),
    change("cost", "Δ cost"),
    side("vs_oracle_a", "vs Oracle A", (row) => row.a?.vs_oracle, overOracle),
    side("vs_oracle_b", "vs Oracle B", (row) => row.b?.vs_oracle, overOracle),
    ...pair("avg_wait", "Wait", seconds),
  ];
  return (
    <Widget
      id="compare-averages"
      title="Averages per task"
      hint="Δ is B against A; green is less, and better. If the workloads differ, look at the distance to the Oracle instead."
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

function change(key: "time" | "energy" | "cost", header: string): Column<Change> {
  return { key, header, numeric: true, value: (row) => row[key], show: (row) => <Difference share={row[key]} /> };
}

export function Movers({ source, rows }: { source: Polled<unknown>; rows: Change[] }) {
  const { gained, lost } = verdict(rows);
  const comparable = rows.some((row) => row.vsOracle !== null);
  return (
    <Widget
      id="compare-movers"
      title="Who gained, who lost"
      hint="Distance to the Oracle in execution time, A → B. Towards +0 % is better, whatever the tasks were."
      source={source}
      empty={!comparable && "It takes the Oracle in both runs, with as many results as the others, to tell."}
      scroll
    >
      <div className="grid gap-4 px-1 sm:grid-cols-2">
        <Group title="Closer to the Oracle in B" rows={gained} tone="text-good" />
        <Group title="Further from it in B" rows={lost} tone="text-bad" />
      </div>
    </Widget>
  );
}

function Group({ title, rows, tone }: { title: string; rows: Change[]; tone: string }): ReactNode {
  return (
    <div>
      <h3 className={`pb-1 text-xs font-medium ${tone}`}>{title}</h3>
      {rows.length === 0 && <p className="text-xs text-muted">Nobody.</p>}
      <ul>
        {rows.map((row) => (
          <li key={row.name} className="flex items-center justify-between gap-3 border-b border-line py-1.5 last:border-0">
            <SchedulerName name={row.name} plain />
            <span className="num text-xs whitespace-nowrap text-muted">{path(row.a, row.b)}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

function path(a: Standing | null, b: Standing | null): string {
  return `${overOracle(a?.vs_oracle)} → ${overOracle(b?.vs_oracle)}`;
}
