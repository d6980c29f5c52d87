import { ArrowLeftRight } from "lucide-react";
import { useMemo } from "react";
import { runPath } from "../api/client";
import { type Polled, usePolled } from "../api/polling";
import { pollInterval, runLabelWithId, useRuns } from "../api/runs";
import type { RunDetail } from "../api/types";
import { count, dateTime } from "../format";
import { Button, Empty, Failure, Link, Select } from "../ui";
import { setParameters, useParameter } from "../url";
import { workloadText } from "../workload";
import { Averages, OracleChanges } from "./compare/Averages";
import { Curves } from "./compare/Curves";
import { changes } from "./compare/differences";
import { SpecDifferences } from "./compare/SpecDifferences";
import { StateBadge } from "./history/RunList";

/** Two runs side by side: ?a=RUN&b=RUN. Without a selection, the two newest. */
export default function Compare() {
  const runs = useRuns();
  const selectedA = useParameter("a");
  const selectedB = useParameter("b");
  const newest = runs.data ?? [];
  const a = selectedA ?? newest.find((run) => run.run !== selectedB)?.run ?? null;
  const b = selectedB ?? newest.find((run) => run.run !== a)?.run ?? null;
  return (
    <div className="flex flex-col gap-4">
      <h2 className="text-lg font-semibold tracking-tight">Compare two runs</h2>
      {a && b ? <Pair key={`${a}|${b}`} a={a} b={b} /> : <TooFewRuns loading={runs.loading} />}
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

function Pair({ a, b }: { a: string; b: string }) {
  const left = usePolled<RunDetail>(runPath(a), 3_000);
  const right = usePolled<RunDetail>(runPath(b), 3_000);
  const rows = useMemo(
    () => (left.data && right.data ? changes(left.data.schedulers, right.data.schedulers) : []),
    [left.data, right.data],
  );
  const failed = [left, right].find((each) => each.error && each.data === null);
  const both = rows.filter((row) => row.a && row.b).map((row) => row.name);
  const everyMs = Math.min(pollInterval(left.data?.state ?? null), pollInterval(right.data?.state ?? null));
  const source = left.data ? right : left;
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
      {failed ? (
        <Failure message={failed.error?.message ?? ""} retry={failed.refetch} />
      ) : (
        <>
          <div className="grid grid-cols-1 gap-4 lg:grid-cols-[minmax(0,1fr)_minmax(0,1fr)]">
            <SpecDifferences source={source} a={left.data} b={right.data} />
            <OracleChanges source={source} rows={rows} />
          </div>
          <Averages source={source} rows={rows} />
          <Curves a={a} b={b} names={both} everyMs={everyMs} />
        </>
      )}
    </>
  );
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
