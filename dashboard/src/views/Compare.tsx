import { ArrowLeftRight } from "lucide-react";
import { Fragment } from "react";
import { runPath } from "../api/client";
import { type Polled, usePolled, usePolledAll } from "../api/polling";
import { pollInterval, runLabelWithId, useRuns } from "../api/runs";
import type { Progress, RunDetail } from "../api/types";
import { count, dateTime } from "../format";
import { Button, Empty, Failure, Link, Select } from "../ui";
import { setParameters, useParameter } from "../url";
import { workloadText } from "../workload";
import { Averages, OracleChanges } from "./compare/Averages";
import { Curves } from "./compare/Curves";
import { changes } from "./compare/differences";
import { FromTask } from "./compare/FromTask";
import { Groups } from "./compare/Groups";
import { MoreRuns } from "./compare/MoreRuns";
import { SpecDifferences } from "./compare/SpecDifferences";
import { alignedTotals, type LoadedRun, type TotalsAt } from "./compare/sameTasks";
import { StateBadge } from "./history/RunList";

/** The points of the curves: the finer, the closer to the end of a running run the comparison is. */
const POINTS = 200;

/** Runs side by side: ?a=RUN&b=RUN&more=RUN,RUN. Without a selection, the two newest. */
export default function Compare() {
  const runs = useRuns();
  const selectedA = useParameter("a");
  const selectedB = useParameter("b");
  const newest = runs.data ?? [];
  const a = selectedA ?? newest.find((run) => run.run !== selectedB)?.run ?? null;
  const b = selectedB ?? newest.find((run) => run.run !== a)?.run ?? null;
  const others = (useParameter("more") ?? "").split(",");
  const more = [...new Set(others)].filter((run) => run && run !== a && run !== b);
  return (
    <div className="flex flex-col gap-4">
      <h2 className="text-lg font-semibold tracking-tight">Compare runs</h2>
      {a && b ? <Pair a={a} b={b} more={more} /> : <TooFewRuns loading={runs.loading} />}
    </div>
  );
}

function TooFewRuns({ loading }: { loading: boolean }) {
  return (
    <div className="mt-16">
      <Empty>
        {loading ? "Loading…" : "There are fewer than two runs. Start another one with one setting changed."}
      </Empty>
    </div>
  );
}

function Pair({ a, b, more }: { a: string; b: string; more: string[] }) {
  const ids = [a, b, ...more];
  const left = usePolled<RunDetail>(runPath(a), 3_000);
  const right = usePolled<RunDetail>(runPath(b), 3_000);
  const everyMs = Math.min(pollInterval(left.data?.state ?? null), pollInterval(right.data?.state ?? null));
  const details = usePolledAll<RunDetail>(
    ids.map((run) => runPath(run)),
    everyMs,
  );
  const progress = usePolledAll<Progress>(
    ids.map((run) => runPath(run, "/progress", { points: POINTS })),
    everyMs,
  );
  const loaded = details.flatMap((detail, at) => {
    const tracks = progress[at];
    return detail && tracks ? [{ detail, progress: tracks }] : [];
  });
  const totals = alignedTotals(loaded);
  const complete = loaded.length === ids.length;
  const rows = complete ? changes(...pairOf(loaded)) : [];
  const failed = [left, right].find((each) => each.error && each.data === null);
  const source = complete || failed ? (left.data ? right : left) : { ...left, data: null, loading: true };
  return (
    <>
      <div className="grid grid-cols-1 items-stretch gap-3 md:grid-cols-[minmax(0,1fr)_auto_minmax(0,1fr)]">
        <Side letter="A" run={a} detail={left} onChoose={(run) => setParameters({ a: run, b }, false)} />
        <Button
          className="self-center justify-self-center"
          label="Swap A and B"
          icon={<ArrowLeftRight aria-hidden className="size-4" />}
          onClick={() => setParameters({ a: b, b: a }, false)}
        />
        <Side letter="B" run={b} detail={right} onChoose={(run) => setParameters({ a, b: run }, false)} />
      </div>
      <MoreRuns chosen={ids} more={more} />
      {failed ? (
        <Failure message={failed.error?.message ?? ""} retry={failed.refetch} />
      ) : (
        // Not what is above: a list that is chosen from with the keyboard keeps the focus.
        <Fragment key={`${a}|${b}`}>
          {left.data && right.data && (left.data.fork || right.data.fork) && (
            <FromTask a={left.data} b={right.data} everyMs={everyMs} />
          )}
          {more.length > 0 && complete && <Groups runs={loaded} totals={totals} />}
          <div className="grid grid-cols-1 gap-4 lg:grid-cols-[minmax(0,1fr)_minmax(0,1fr)]">
            <SpecDifferences source={source} a={left.data} b={right.data} />
            <OracleChanges source={source} rows={rows} />
          </div>
          <Averages source={source} rows={rows} />
          <Curves a={a} b={b} names={rows.map((row) => row.name)} everyMs={everyMs} />
        </Fragment>
      )}
    </>
  );
}

/** A and B alone: as many tasks as these two have. */
function pairOf(loaded: LoadedRun[]): [Record<string, TotalsAt>, Record<string, TotalsAt>] {
  const [left = {}, right = {}] = alignedTotals(loaded.slice(0, 2));
  return [left, right];
}

function Side({
  letter,
  run,
  detail,
  onChoose,
}: {
  letter: string;
  run: string;
  detail: Polled<RunDetail>;
  onChoose: (run: string) => void;
}) {
  const runs = useRuns().data ?? [];
  const data = detail.data;
  const missing = !runs.some((each) => each.run === run);
  return (
    <section aria-label={`Run ${letter}`} className="glass flex min-w-0 flex-col gap-2 rounded-[14px] p-4">
      <div className="flex min-w-0 items-center gap-3">
        <span
          aria-hidden
          className="flex size-8 shrink-0 items-center justify-center rounded-lg bg-accent/15 font-semibold text-accent"
        >
          {letter}
        </span>
        <Select
          label={`Run ${letter}`}
          data-testid={`compare-${letter.toLowerCase()}`}
          value={run}
          choices={[
            ...(missing ? [{ value: run, label: data ? runLabelWithId(data) : run }] : []),
            ...runs.map((each) => ({ value: each.run, label: runLabelWithId(each) })),
          ]}
          onChoose={onChoose}
        />
        {data && <StateBadge state={data.state} />}
      </div>
      {data && (
        <p className="num text-xs text-muted">
          {dateTime(data.created_at)} · {count(data.tasks)} tasks · {workloadText(data.spec)} · seed {data.spec.seed} ·{" "}
          <Link view="history" change={{ run: data.run }} className="text-accent underline">
            history
          </Link>
        </p>
      )}
    </section>
  );
}
