import { GitCompareArrows, Repeat2, Swords } from "lucide-react";
import { runPath } from "../api/client";
import { usePolled } from "../api/polling";
import { isActive, pollInterval, runLabel } from "../api/runs";
import type { RunDetail } from "../api/types";
import { count, dateTime } from "../format";
import { Empty, Link } from "../ui";
import { workloadText } from "../workload";
import { ForkForm } from "./fork/ForkForm";
import { Models, ModelTable, useModels } from "./history/Models";
import { Notes } from "./history/Notes";
import { Reports } from "./history/Reports";
import { RunList, StateBadge } from "./history/RunList";
import { StoredData } from "./history/StoredData";
import { MetricSelect, Trends } from "./history/Trends";
import { useSelectedRun } from "./selectedRun";

export default function History() {
  const run = useSelectedRun();
  return (
    <div className="flex flex-col gap-4">
      <RunList selected={run} />
      {run && <RunDetails key={run} run={run} />}
      <Reports />
    </div>
  );
}

function RunDetails({ run }: { run: string }) {
  const detail = usePolled<RunDetail>(runPath(run), 3_000);
  const state = detail.data?.state ?? null;
  const everyMs = pollInterval(state);
  const models = useModels(run, Math.max(everyMs, 10_000));
  if (detail.error && detail.data === null) return <Empty>{detail.error.message}</Empty>;
  return (
    <>
      {detail.data && <Heading run={detail.data} />}
      {detail.data && <Notes run={detail.data} />}
      {detail.data && <ForkForm run={run} spec={detail.data.spec} at={null} />}
      <div className="grid grid-cols-1 gap-4 lg:grid-cols-[minmax(0,1fr)_minmax(0,1fr)]">
        <Trends run={run} spec={detail.data?.spec ?? null} everyMs={everyMs} />
      </div>
      <div className="grid grid-cols-1 gap-4 xl:grid-cols-[minmax(0,2fr)_minmax(0,3fr)]">
        <div className="h-96">
          <Models source={models} />
        </div>
        <div className="h-96">
          <ModelTable source={models} active={isActive(state)} />
        </div>
      </div>
      <StoredData detail={detail} models={models} />
    </>
  );
}

function Heading({ run }: { run: RunDetail }) {
  const shape =
    "inline-flex h-8 items-center gap-1.5 rounded-lg border border-line bg-sunken px-2.5 text-xs hover:border-line-strong";
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-2 pt-2">
      <h2 className="min-w-0 truncate text-lg font-semibold tracking-tight">{runLabel(run)}</h2>
      <StateBadge state={run.state} />
      <span className="text-xs text-muted">
        started {dateTime(run.created_at)} · {workloadText(run.spec)} · seed {run.spec.seed}
      </span>
      {run.fork && <ForkedFrom run={run.run} fork={run.fork} />}
      <span className="ml-auto flex flex-wrap gap-2">
        <MetricSelect />
        <Link view="arena" change={{ run: run.run }} className={shape}>
          <Swords aria-hidden className="size-3.5" /> Arena
        </Link>
        <Link view="compare" change={{ a: run.run }} className={shape}>
          <GitCompareArrows aria-hidden className="size-3.5" /> Compare
        </Link>
        <Link view="new" change={{ from: run.run }} className={shape}>
          <Repeat2 aria-hidden className="size-3.5" /> Run again
        </Link>
      </span>
    </div>
  );
}

function ForkedFrom({ run, fork }: { run: string; fork: NonNullable<RunDetail["fork"]> }) {
  return (
    <Link view="compare" change={{ a: fork.run, b: run }} className="text-xs text-accent underline">
      forked from {fork.run} at task #{count(fork.at)}
    </Link>
  );
}
