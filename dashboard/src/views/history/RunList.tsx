import { GitCompareArrows, Plus, Repeat2, Swords, Trash2 } from "lucide-react";
import { useState } from "react";
import { path, remove, runPath } from "../../api/client";
import { isActive } from "../../api/runs";
import type { Run, RunDetail } from "../../api/types";
import { type Polled, usePolled } from "../../api/usePolled";
import { count, dateTime, overOracle } from "../../format";
import { labelOf, ORACLE } from "../../schedulers";
import { openView, setParameters, useParameter } from "../../url";
import { Badge, Button, type Column, Link, SchedulerName, Table, toast, type Tone, Widget } from "../../ui";
import { paceOf } from "../chosenRun";
import { best } from "./best";

const PAGE = 20;

export const STATE_TONE: Record<string, Tone> = {
  running: "good",
  paused: "warn",
  completed: "accent",
  stopped: "neutral",
};

function useDetail(run: Run): Polled<RunDetail> {
  return usePolled<RunDetail>(runPath(run.run), paceOf(run.state));
}

/** A label for a run: its name, or its id when it has none. */
export function runLabel(run: Pick<Run, "run" | "name">): string {
  return run.name || run.run;
}

export function RunList({ chosen }: { chosen: string | null }) {
  const before = useParameter("before");
  const runs = usePolled<Run[]>(path("/api/runs", { limit: PAGE, before }), 4_000);
  const rows = runs.data ?? [];
  const oldest = rows.at(-1)?.run;
  return (
    <Widget
      id="runs"
      title="Runs"
      hint="Newest first; choose one to see its course below. Best is who came closest to the Oracle: the nearer to +0 %, the better."
      source={runs}
      empty={rows.length === 0 && !before && "No run yet. Start one, and its history is kept here."}
      actions={<ListActions runs={rows} refetch={runs.refetch} />}
      scroll
    >
      <Table
        caption="Runs"
        columns={columns(chosen)}
        rows={rows}
        rowKey={(run) => run.run}
        rowAttributes={(run) => ({
          "data-run": run.run,
          ...(run.run === chosen ? { "aria-current": "true" } : {}),
        })}
        sortable={false}
        empty="No older runs."
      />
      <div className="flex gap-2 px-2 pt-3">
        {before && <Button onClick={() => setParameters({ before: null }, false)}>Newest runs</Button>}
        {rows.length === PAGE && (
          <Button onClick={() => setParameters({ before: oldest }, false)}>Older runs</Button>
        )}
      </div>
    </Widget>
  );
}

function columns(chosen: string | null): Column<Run>[] {
  return [
    { key: "run", header: "Run", value: runLabel, show: (run) => <RunName run={run} chosen={run.run === chosen} /> },
    {
      key: "state",
      header: "State",
      value: (run) => run.state,
      show: (run) => <Badge tone={STATE_TONE[run.state] ?? "neutral"}>{run.state}</Badge>,
    },
    { key: "best", header: "Best", value: () => null, show: (run) => <Best run={run} /> },
    { key: "tasks", header: "Tasks", numeric: true, value: () => null, show: (run) => <Tasks run={run} /> },
    {
      key: "created_at",
      header: "Started",
      value: (run) => run.created_at,
      show: (run) => <span className="text-muted">{dateTime(run.created_at)}</span>,
    },
    { key: "preset", header: "Workload", value: workloadOf },
    { key: "seed", header: "Seed", numeric: true, value: (run) => run.spec.seed },
    { key: "schedulers", header: "Schedulers", value: () => null, show: (run) => <Competitors names={run.spec.schedulers} /> },
    { key: "actions", header: "Open", value: () => null, show: (run) => <Actions run={run} chosen={chosen} /> },
  ];
}

function workloadOf(run: Run): string {
  const { preset, drift } = run.spec.workload;
  return [preset, ...drift.map((step) => step.preset)].join(" → ");
}

function RunName({ run, chosen }: { run: Run; chosen: boolean }) {
  return (
    <Link
      view="history"
      change={{ run: run.run, before: null }}
      className={`block max-w-56 truncate hover:underline ${chosen ? "font-semibold text-accent" : ""}`}
      title={run.run}
    >
      {runLabel(run)}
      {run.name && <span className="block truncate font-mono text-[0.6875rem] font-normal text-faint">{run.run}</span>}
    </Link>
  );
}

function Tasks({ run }: { run: Run }) {
  const { data } = useDetail(run);
  const wanted = run.spec.tasks;
  return (
    <span data-value={data?.tasks}>
      {count(data?.tasks)}
      <span className="text-faint"> / {wanted === null ? "∞" : count(wanted)}</span>
    </span>
  );
}

function Best({ run }: { run: Run }) {
  const { data } = useDetail(run);
  const first = best(data?.schedulers ?? {});
  if (!first) return <span className="text-faint">–</span>;
  return (
    <span className="inline-flex items-center gap-2">
      <SchedulerName name={first.name} plain />
      {first.vs_oracle !== null && <span className="text-muted">{overOracle(first.vs_oracle)}</span>}
    </span>
  );
}

function Competitors({ names }: { names: string[] }) {
  const others = names.filter((name) => name !== ORACLE);
  return (
    <span className="text-muted" title={names.map(labelOf).join(", ")}>
      {others.length}
      {names.includes(ORACLE) ? " + Oracle" : ""}
    </span>
  );
}

function Actions({ run, chosen }: { run: Run; chosen: string | null }) {
  const shape = "inline-flex size-7 items-center justify-center rounded-md text-muted hover:bg-raised hover:text-ink";
  const label = runLabel(run);
  return (
    <span className="inline-flex gap-0.5">
      <Link view="arena" change={{ run: run.run }} className={shape} aria-label={`Arena of ${label}`} title="Arena">
        <Swords aria-hidden className="size-4" />
      </Link>
      <Link
        view="compare"
        change={{ a: chosen ?? run.run, b: chosen === run.run ? null : run.run }}
        className={shape}
        aria-label={`Compare ${label} with the chosen run`}
        title="Compare with the chosen run"
      >
        <GitCompareArrows aria-hidden className="size-4" />
      </Link>
      <Link
        view="new"
        change={{ from: run.run }}
        className={shape}
        aria-label={`New run with the spec of ${label}`}
        title="New run with this spec"
      >
        <Repeat2 aria-hidden className="size-4" />
      </Link>
    </span>
  );
}

function ListActions({ runs, refetch }: { runs: Run[]; refetch: () => void }) {
  const [asking, setAsking] = useState(false);
  const forget = async () => {
    setAsking(false);
    try {
      const { runs: deleted, left } = await remove<{ runs: number; left: number }>("/api/history");
      const later = left ? `; ${count(left)} still have work on its way: delete again later` : "";
      toast(`${count(deleted)} finished ${deleted === 1 ? "run" : "runs"} deleted${later}`);
      setParameters({ before: null });
      refetch();
    } catch (error) {
      toast(`Not deleted: ${error instanceof Error ? error.message : String(error)}`, "bad");
    }
  };
  if (asking) {
    return (
      <span className="inline-flex items-center gap-2" role="group" aria-label="Delete finished runs?">
        <Button look="danger" className="h-8!" onClick={() => void forget()} autoFocus>
          Delete all finished runs
        </Button>
        <Button className="h-8!" onClick={() => setAsking(false)}>
          Keep
        </Button>
      </span>
    );
  }
  return (
    <>
      <Button
        look="ghost"
        className="size-8!"
        label="Delete finished runs"
        disabled={runs.every((run) => isActive(run.state))}
        icon={<Trash2 aria-hidden className="size-4" />}
        onClick={() => setAsking(true)}
      />
      <Button className="h-8!" icon={<Plus aria-hidden className="size-4" />} onClick={() => openView("new")}>
        New run
      </Button>
    </>
  );
}
