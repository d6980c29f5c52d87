import { useMutation } from "@tanstack/react-query";
import { GitCompareArrows, Plus, Repeat2, StickyNote, Swords, Trash2 } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { path, remove, runPath } from "../../api/client";
import { type Polled, toastFailure, usePolled } from "../../api/polling";
import { isActive, pollInterval, runLabel } from "../../api/runs";
import type { Deleted, Run, RunDetail, RunState } from "../../api/types";
import { count, dateTime, seconds } from "../../format";
import { averageOf, bestCompetitor } from "../../raceMeasure";
import { isReference, labelOf } from "../../schedulers";
import {
  Badge,
  Button,
  type Column,
  FailedBadge,
  Link,
  SchedulerName,
  Table,
  type Tone,
  toast,
  Widget,
} from "../../ui";
import { openView, setParameters, useParameter } from "../../url";
import { isTrace, workloadText } from "../../workload";

const PAGE = 20;
const SEARCH_AFTER_MS = 250;
/** Another scheduler of a running run takes the first place only if it is better by this share. */
const CLEARLY_BETTER = 0.02;

const STATE_TONE: Record<RunState, Tone> = {
  running: "good",
  paused: "warn",
  completed: "accent",
  stopped: "neutral",
};

function useDetail(run: Run): Polled<RunDetail> {
  return usePolled<RunDetail>(runPath(run.run), pollInterval(run.state));
}

export function StateBadge({ state }: { state: RunState }) {
  return <Badge tone={STATE_TONE[state]}>{state}</Badge>;
}

export function RunList({ selected }: { selected: string | null }) {
  const before = useParameter("before");
  const search = useParameter("search");
  const runs = usePolled<Run[]>(path("/api/runs", { limit: PAGE, before, search }), 4_000);
  const rows = runs.data ?? [];
  const oldest = rows.at(-1)?.run;
  return (
    <Widget
      id="runs"
      title="Runs"
      caption="Newest first. Click a run for its details below. Best: the competitor with the shortest mean turnaround."
      source={runs}
      empty={rows.length === 0 && !before && !search && "No run yet."}
      actions={<ListActions runs={rows} refetch={runs.refetch} />}
      scroll
    >
      <Search />
      <Table
        caption="Runs"
        columns={columns(selected)}
        rows={rows}
        rowKey={(run) => run.run}
        rowAttributes={(run) => ({
          "data-run": run.run,
          ...(run.run === selected ? { "aria-current": "true" } : {}),
        })}
        sortable={false}
        empty={search ? `No run matches “${search}”.` : "No older runs."}
      />
      <div className="flex gap-2 px-2 pt-3">
        {before && <Button onClick={() => setParameters({ before: null }, false)}>Newest runs</Button>}
        {rows.length === PAGE && <Button onClick={() => setParameters({ before: oldest }, false)}>Older runs</Button>}
      </div>
    </Widget>
  );
}

/** By id, name, tags, notes, state, workload and device types; kept in the address. */
function Search() {
  const search = useParameter("search") ?? "";
  const [typed, setTyped] = useState(search);
  useEffect(() => {
    const timer = setTimeout(() => setParameters({ search: typed.trim(), before: null }), SEARCH_AFTER_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return (
    <input
      type="search"
      aria-label="Search runs"
      data-testid="search-runs"
      placeholder="Search name, tag, note, workload, device"
      className="mb-2 ml-1 h-9 w-full max-w-96 rounded-lg border border-line bg-raised px-3 placeholder:text-faint hover:border-line-strong"
      value={typed}
      onChange={(event) => setTyped(event.target.value)}
    />
  );
}

function columns(selected: string | null): Column<Run>[] {
  return [
    {
      key: "run",
      header: "Run",
      value: runLabel,
      show: (run) => <RunName run={run} selected={run.run === selected} />,
    },
    {
      key: "state",
      header: "State",
      value: (run) => run.state,
      show: (run) => <StateBadge state={run.state} />,
    },
    {
      key: "tags",
      header: "Tags",
      value: (run) => run.tags.join(", "),
      show: (run) => (
        <span className="inline-flex gap-1" title={run.notes || undefined}>
          {run.tags.map((tag) => (
            <Badge key={tag}>{tag}</Badge>
          ))}
          {run.notes && <StickyNote aria-label={`Notes: ${run.notes}`} className="size-3.5 text-muted" />}
        </span>
      ),
    },
    { key: "best", header: "Best turnaround", value: () => null, show: (run) => <Best run={run} /> },
    { key: "tasks", header: "Tasks", numeric: true, value: () => null, show: (run) => <Tasks run={run} /> },
    {
      key: "created_at",
      header: "Started",
      value: (run) => run.created_at,
      show: (run) => <span className="text-muted">{dateTime(run.created_at)}</span>,
    },
    { key: "preset", header: "Workload", value: (run) => workloadText(run.spec) },
    { key: "seed", header: "Seed", numeric: true, value: (run) => run.spec.seed },
    {
      key: "schedulers",
      header: "Schedulers",
      value: () => null,
      show: (run) => <SchedulerCount names={run.spec.schedulers} />,
    },
    { key: "actions", header: "Open", value: () => null, show: (run) => <Actions run={run} selected={selected} /> },
  ];
}

function RunName({ run, selected }: { run: Run; selected: boolean }) {
  return (
    <Link
      view="history"
      change={{ run: run.run, before: null }}
      className={`block max-w-56 truncate hover:underline ${selected ? "font-semibold text-accent" : ""}`}
      title={run.run}
    >
      {runLabel(run)}
      {run.name && <span className="block truncate font-mono text-[0.6875rem] font-normal text-faint">{run.run}</span>}
    </Link>
  );
}

function Tasks({ run }: { run: Run }) {
  const { data } = useDetail(run);
  const limit = run.spec.tasks;
  return (
    <span data-value={data?.tasks}>
      {count(data?.tasks)}
      {!isTrace(run.spec) && <span className="text-faint"> / {limit === null ? "∞" : count(limit)}</span>}
    </span>
  );
}

function Best({ run }: { run: Run }) {
  const { data } = useDetail(run);
  const rows = Object.entries(data?.schedulers ?? {}).map(([name, totals]) => ({ name, ...totals }));
  const best = useSteadyBest(rows, isActive(run.state));
  if (!best) return <span className="text-faint">–</span>;
  return (
    <span className="inline-flex items-center gap-2">
      <SchedulerName name={best.name} plain />
      <span className="text-muted" data-field="best" data-value={best.avg_turnaround}>
        {seconds(best.avg_turnaround)}
      </span>
      <FailedBadge failed={best.failed} tasks={best.tasks} />
    </span>
  );
}

/** While tasks are on their way, schedulers have different numbers of them, and near ties change all the time. */
function useSteadyBest<Row extends Parameters<typeof averageOf>[0]>(rows: Row[], active: boolean): Row | undefined {
  const shown = useRef<string | null>(null);
  const best = bestCompetitor(rows, "turnaround");
  const before = rows.find((row) => row.name === shown.current && row.tasks > 0);
  const clearly =
    !before || !best || averageOf(best, "turnaround") < (1 - CLEARLY_BETTER) * averageOf(before, "turnaround");
  const steady = active && !clearly ? before : best;
  shown.current = steady?.name ?? null;
  return steady;
}

function SchedulerCount({ names }: { names: string[] }) {
  const references = names.filter(isReference);
  return (
    <span className="text-muted" title={names.map(labelOf).join(", ")}>
      {[names.length - references.length, ...references.map(labelOf)].join(" + ")}
    </span>
  );
}

function Actions({ run, selected }: { run: Run; selected: string | null }) {
  const shape = "inline-flex size-7 items-center justify-center rounded-md text-muted hover:bg-raised hover:text-ink";
  const label = runLabel(run);
  return (
    <span className="inline-flex gap-0.5">
      <Link view="arena" change={{ run: run.run }} className={shape} aria-label={`Arena of ${label}`} title="Arena">
        <Swords aria-hidden className="size-4" />
      </Link>
      <Link
        view="compare"
        change={{ a: selected ?? run.run, b: selected === run.run ? null : run.run }}
        className={shape}
        aria-label={`Compare ${label} with the selected run`}
        title="Compare with the selected run"
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
  const [confirming, setConfirming] = useState(false);
  const { mutate } = useMutation({
    mutationFn: () => remove<Deleted>("/api/history"),
    onMutate: () => setConfirming(false),
    onSuccess: ({ runs: deleted, left }) => {
      const later = left ? `. ${count(left)} still have unprocessed tasks: delete again later` : "";
      toast(`${count(deleted)} finished ${deleted === 1 ? "run" : "runs"} deleted${later}`);
      setParameters({ before: null });
      refetch();
    },
    onError: (error) => toastFailure("Could not delete the runs", error),
  });
  if (confirming) {
    return (
      <span className="inline-flex items-center gap-2" role="group" aria-label="Delete finished runs?">
        <Button variant="danger" className="h-8!" onClick={() => mutate()} autoFocus>
          Delete all finished runs
        </Button>
        <Button className="h-8!" onClick={() => setConfirming(false)}>
          Cancel
        </Button>
      </span>
    );
  }
  return (
    <>
      <Button
        variant="ghost"
        className="size-8!"
        label="Delete finished runs"
        disabled={runs.every((run) => isActive(run.state))}
        icon={<Trash2 aria-hidden className="size-4" />}
        onClick={() => setConfirming(true)}
      />
      <Button className="h-8!" icon={<Plus aria-hidden className="size-4" />} onClick={() => openView("new")}>
        New run
      </Button>
    </>
  );
}
