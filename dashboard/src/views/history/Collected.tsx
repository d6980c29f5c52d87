import { runPath } from "../../api/client";
import type { ModelRow, RunDetail, Standing } from "../../api/types";
import type { Polled } from "../../api/usePolled";
import { count, percent, seconds } from "../../format";
import { ORACLE } from "../../schedulers";
import { type Column, Link, SchedulerName, Stat, Table, Widget } from "../../ui";
import { MOST_MODELS } from "./Models";

type Row = Standing & { name: string };

/** What a run has left in the store, and how complete it is. */
export function Collected({ detail, models }: { detail: Polled<RunDetail>; models: Polled<ModelRow[]> }) {
  const run = detail.data;
  const rows: Row[] = Object.entries(run?.schedulers ?? {}).map(([name, standing]) => ({ name, ...standing }));
  const results = rows.reduce((sum, row) => sum + row.results, 0);
  const failed = rows.reduce((sum, row) => sum + row.failed, 0);
  const complete = rows.length ? Math.min(...rows.map((row) => row.results)) : 0;
  const made = models.data;
  const shipped = made?.filter((row) => row.shipped).length;
  return (
    <Widget
      id="collected"
      title="Data collected"
      hint="What this run has left in the store. Complete means: every scheduler has as many results as there were tasks."
      source={detail}
      empty={run !== null && rows.length === 0 && "No results are stored yet."}
      scroll
    >
      <dl className="grid grid-cols-2 gap-x-6 gap-y-3 px-1 pb-4 sm:grid-cols-3 xl:grid-cols-6">
        <Stat label="Tasks sent" value={count(run?.tasks)} raw={run?.tasks} />
        <Stat label="Done by all" value={count(complete)} raw={complete} note={run && share(complete, run.tasks)} />
        <Stat label="Results stored" value={count(results)} raw={results} />
        <Stat label="Failed" value={count(failed)} raw={failed} note={share(failed, results)} />
        <Stat
          label="Training rows"
          value={count(run?.schedulers[ORACLE]?.results ?? 0)}
          note="the Oracle's answers"
        />
        <Stat label="Models made" value={madeText(made)} raw={made?.length} note={`${count(shipped)} shipped`} />
      </dl>
      <Table
        caption="Results by scheduler"
        columns={columns(run?.run, run?.bound ?? null)}
        rows={rows}
        rowKey={(row) => row.name}
        rowAttributes={(row) => ({ "data-scheduler": row.name })}
      />
      {run && (
        <p className="px-2.5 pt-3 text-xs text-muted">
          The same as JSON:{" "}
          <a className="text-accent underline" href={runPath(run.run)}>
            standings
          </a>
          {", "}
          <a className="text-accent underline" href={runPath(run.run, "/progress", { points: 500 })}>
            course
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

/** The list of models is cut; a full list is at least that many. */
function madeText(made: ModelRow[] | null): string {
  return made && made.length >= MOST_MODELS ? `${count(made.length)}+` : count(made?.length);
}

function share(part: number, whole: number): string {
  return whole > 0 ? percent(part / whole) : "–";
}

const columns = (run: string | undefined, bound: number | null): Column<Row>[] => [
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
  { key: "results", header: "Results", numeric: true, value: (row) => row.results, show: (row) => count(row.results) },
  { key: "gpu_tasks", header: "On a GPU", numeric: true, value: (row) => row.gpu_tasks, show: (row) => count(row.gpu_tasks) },
  { key: "failed", header: "Failed", numeric: true, value: (row) => row.failed, show: (row) => count(row.failed) },
  { key: "avg_time", header: "Avg time", numeric: true, value: (row) => row.avg_time, show: (row) => seconds(row.avg_time) },
  { key: "avg_wait", header: "Avg wait", numeric: true, value: (row) => row.avg_wait, show: (row) => seconds(row.avg_wait) },
  {
    key: "makespan",
    header: "Makespan",
    hint: "simulated time at which the last task was finished",
    numeric: true,
    value: (row) => row.makespan,
    show: (row) => seconds(row.makespan),
  },
  {
    key: "bound",
    header: "× bound",
    hint: "Makespan over the cluster bound, which no schedule can beat: all tasks cut freely over all devices. Known when the run is complete.",
    numeric: true,
    value: (row) => bound && row.makespan / bound,
    show: (row) => (bound ? (row.makespan / bound).toFixed(2) : "–"),
  },
];
