import { GitCompareArrows, Repeat2, Swords } from "lucide-react";
import { runPath } from "../api/client";
import { isActive } from "../api/runs";
import type { RunDetail } from "../api/types";
import { usePolled } from "../api/usePolled";
import { dateTime } from "../format";
import { Badge, Empty, Link } from "../ui";
import { paceOf, useChosenRun } from "./chosenRun";
import { Collected } from "./history/Collected";
import { Models, ModelTable, useModels } from "./history/Models";
import { RunList, runLabel, STATE_TONE } from "./history/RunList";
import { MetricChoice, Trends } from "./history/Trends";

export default function History() {
  const run = useChosenRun();
  return (
    <div className="flex flex-col gap-4">
      <RunList chosen={run} />
      {run && <Course key={run} run={run} />}
    </div>
  );
}

/** One run from its first task to its last. */
function Course({ run }: { run: string }) {
  const detail = usePolled<RunDetail>(runPath(run), 3_000);
  const state = detail.data?.state ?? null;
  const every = paceOf(state);
  const models = useModels(run, Math.max(every, 10_000));
  if (detail.error && detail.data === null) return <Empty>{detail.error.message}</Empty>;
  return (
    <>
      {detail.data && <Heading run={detail.data} />}
      <div className="grid grid-cols-1 gap-4 lg:grid-cols-[minmax(0,1fr)_minmax(0,1fr)]">
        <Trends run={run} every={every} />
      </div>
      <div className="grid grid-cols-1 gap-4 xl:grid-cols-[minmax(0,2fr)_minmax(0,3fr)]">
        <div className="h-96">
          <Models source={models} />
        </div>
        <div className="h-96">
          <ModelTable source={models} active={isActive(state)} />
        </div>
      </div>
      <Collected detail={detail} models={models} />
    </>
  );
}

function Heading({ run }: { run: RunDetail }) {
  const shape =
    "inline-flex h-8 items-center gap-1.5 rounded-lg border border-line bg-sunken px-2.5 text-xs hover:border-line-strong";
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-2 pt-2">
      <h2 className="min-w-0 truncate text-lg font-semibold tracking-tight">{runLabel(run)}</h2>
      <Badge tone={STATE_TONE[run.state] ?? "neutral"}>{run.state}</Badge>
      <span className="text-xs text-muted">
        since {dateTime(run.created_at)} · {run.spec.workload.preset} · seed {run.spec.seed}
      </span>
      <span className="ml-auto flex flex-wrap gap-2">
        <MetricChoice />
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
