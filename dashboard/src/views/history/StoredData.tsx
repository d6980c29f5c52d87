import { runPath } from "../../api/client";
import type { Polled } from "../../api/polling";
import type { RunDetail, SchedulerTotals, StoredModel } from "../../api/types";
import { count, joules, number, overBound, percent, seconds } from "../../format";
import { ORACLE } from "../../schedulers";
import { type Column, failedColumn, Link, numberColumn, SchedulerName, Stat, Table, Widget } from "../../ui";
import { MAX_MODELS } from "./Models";

type Row = SchedulerTotals & { name: string };

/** What is stored of a run, and how complete it is. */
export function StoredData({ detail, models }: { detail: Polled<RunDetail>; models: Polled<StoredModel[]> }) {
  const run = detail.data;
  const rows: Row[] = Object.entries(run?.schedulers ?? {}).map(([name, totals]) => ({ name, ...totals }));
  const results = rows.reduce((sum, row) => sum + row.results, 0);
  const failed = rows.reduce((sum, row) => sum + row.failed, 0);
  const complete = rows.length ? Math.min(...rows.map((row) => row.results)) : 0;
  const versions = models.data;
  const published = versions?.filter((row) => row.shipped).length;
  return (
    <Widget
      id="stored-data"
      title="Stored data"
      caption="Complete when every scheduler has a result for every task."
      source={detail}
      empty={run !== null && rows.length === 0 && "No results are stored yet."}
      scroll
    >
      <dl className="grid grid-cols-2 gap-x-6 gap-y-3 px-1 pb-4 sm:grid-cols-3 xl:grid-cols-6">
        <Stat label="Tasks sent" value={count(run?.tasks)} raw={run?.tasks} />
        <Stat label="Finished by all" value={count(complete)} raw={complete} note={run && share(complete, run.tasks)} />
        <Stat label="Results stored" value={count(results)} raw={results} />
        <Stat label="Failed" value={count(failed)} raw={failed} note={share(failed, results)} />
        <Stat
          label="Training rows"
          value={count(run?.schedulers[ORACLE]?.results ?? 0)}
          note="decisions of the Oracle"
        />
        <Stat
          label="Models"
          value={modelCount(versions)}
          raw={versions?.length}
          note={`${count(published)} published`}
        />
      </dl>
      <Table
        caption="Results by scheduler"
        columns={columns(run?.run)}
        rows={rows}
        rowKey={(row) => row.name}
        rowAttributes={(row) => ({ "data-scheduler": row.name })}
      />
      {run && (
        <p className="px-2.5 pt-3 text-xs text-muted">
          As JSON:{" "}
          <a className="text-accent underline" href={runPath(run.run)}>
            totals
          </a>
          {", "}
          <a className="text-accent underline" href={runPath(run.run, "/progress", { points: 500 })}>
            progress
          </a>
          {", "}
          <a className="text-accent underline" href={`/api/full_history?run=${run.run}`}>
            training rows
          </a>
          .
        </p>
      )}
    </Widget>
  );
}

/** The list of models is limited: there may be more. */
function modelCount(versions: StoredModel[] | null): string {
  return versions && versions.length >= MAX_MODELS ? `${count(versions.length)}+` : count(versions?.length);
}

function share(part: number, total: number): string {
  return total > 0 ? percent(part / total) : "–";
}

const columns = (run: string | undefined): Column<Row>[] => [
  {
    key: "name",
    header: "Scheduler",
    value: (row) => row.name,
    show: (row) => (
      <Link view="scheduler" change={{ run, scheduler: row.name }} className="hover:underline">
        <SchedulerName name={row.name} plain />
      </Link>
    ),
  },
  numberColumn("results", "Results"),
  failedColumn(),
  numberColumn("gpu_tasks", "Accelerated", count, "Tasks of which a part ran on an accelerator"),
  numberColumn("avg_turnaround", "Avg turnaround", seconds, "Execution and waiting"),
  numberColumn("avg_time", "Avg execution", seconds),
  numberColumn("avg_wait", "Avg wait", seconds),
  numberColumn("turnaround_p95", "p95", seconds, "95 % of the tasks had no longer turnaround"),
  numberColumn("turnaround_p99", "p99", seconds, "99 % of the tasks had no longer turnaround"),
  numberColumn("avg_slowdown", "Slowdown", number, "Mean turnaround over the time on the fastest device"),
  numberColumn("avg_energy", "Avg energy", joules, "Of devices that work"),
  numberColumn("avg_idle_energy", "Avg idle energy", joules, "Of idle devices, beside that"),
  numberColumn("makespan", "Makespan", seconds, "Simulated time at which the last task ended"),
  numberColumn(
    "vs_bound",
    "Makespan / bound",
    overBound,
    "The bound is the time if all tasks could be divided freely between all devices. Known when the run is complete.",
  ),
];
