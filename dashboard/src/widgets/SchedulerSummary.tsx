import { useRunPolled } from "../api/runs";
import type { RunDetail } from "../api/types";
import { count, dollars, joules, number, overBound, overOracle, percent, ratio, seconds } from "../format";
import { type ComparisonRow, useComparison } from "../live";
import { isReference, ORACLE } from "../schedulers";
import { FailedBadge, Stat } from "../ui";
import { describeWeights, useWeights } from "../weights";

/** Ten numbers of a scheduler, compared with the Oracle. */
export function SchedulerSummary({ name }: { name: string }) {
  const rows = useComparison();
  const [weights] = useWeights();
  const bound = useRunPolled<RunDetail>("").data?.bound ?? null;
  const row = rows.find((each) => each.name === name);
  const oracle = name === ORACLE ? undefined : rows.find((each) => each.name === ORACLE);
  if (!row) return null;
  const competitors = rows.filter((each) => !isReference(each.name));
  const versus = (key: "avg_energy" | "avg_cost" | "avg_turnaround" | "makespan") =>
    versusOracle(ratio(row[key], oracle?.[key]));
  return (
    <dl
      className="glass grid grid-cols-2 gap-x-6 gap-y-4 rounded-[14px] px-5 py-4 sm:grid-cols-3 lg:grid-cols-5 min-[1800px]:grid-cols-10"
      data-testid="scheduler-summary"
    >
      <Stat
        label="Average turnaround"
        value={seconds(row.avg_turnaround)}
        raw={row.avg_turnaround}
        note={versus("avg_turnaround")}
      />
      <Stat
        label="Average wait"
        value={seconds(row.avg_wait)}
        raw={row.avg_wait}
        note={`p95 turnaround ${seconds(row.turnaround_p95)}`}
      />
      <Stat label="Average execution" value={seconds(row.avg_time)} raw={row.avg_time} note={timeNote(row, oracle)} />
      <Stat label="Average energy" value={joules(row.avg_energy)} raw={row.avg_energy} note={versus("avg_energy")} />
      <Stat label="Average cost" value={dollars(row.avg_cost)} raw={row.avg_cost} note={versus("avg_cost")} />
      <Stat
        label="Average slowdown"
        value={number(row.avg_slowdown)}
        raw={row.avg_slowdown}
        note="turnaround / fastest time"
      />
      <Stat
        label="Makespan"
        value={seconds(row.makespan)}
        raw={row.makespan}
        note={bound === null ? versus("makespan") : `${overBound(ratio(row.makespan, bound))} the bound`}
      />
      <Stat
        label="Tasks accelerated"
        value={percent(row.gpu_share)}
        raw={row.gpu_share}
        note={oracle && `Oracle ${percent(oracle.gpu_share)}`}
      />
      <Stat
        label="Tasks"
        value={count(row.tasks)}
        raw={row.tasks}
        note={row.failed ? <FailedBadge failed={row.failed} tasks={row.tasks} /> : "none failed"}
      />
      <Stat
        label={`Rank by ${describeWeights(weights)}`}
        value={row.rank === null ? "reference" : `${row.rank} of ${competitors.length}`}
        raw={row.rank}
        note={rankNote(row)}
      />
    </dl>
  );
}

function rankNote(row: ComparisonRow): string {
  if (row.rank === null) return "does not compete";
  return row.pareto ? "on the Pareto front" : "another one is better in everything";
}

function timeNote(row: ComparisonRow, oracle: ComparisonRow | undefined): string {
  if (!oracle) return row.name === ORACLE ? "best possible" : "";
  if (row.vs_oracle !== null) return versusOracle(row.vs_oracle);
  const estimate = versusOracle(ratio(row.avg_time, oracle.avg_time));
  return estimate && `≈ ${estimate}`;
}

function versusOracle(value: number | null): string {
  return value === null ? "" : `${overOracle(value)} vs Oracle`;
}
