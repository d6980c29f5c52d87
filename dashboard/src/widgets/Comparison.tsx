import { useRunPolled } from "../api/runs";
import type { RunDetail } from "../api/types";
import { dollars, joules, modelVersion, number, overBound, overOracle, percent, ratio, seconds } from "../format";
import { type ComparisonRow, useComparison } from "../live";
import { RACE_MEASURES, type RaceMeasure, useRaceMeasure } from "../raceMeasure";
import { type Column, failedColumn, numberColumn, schedulerColumn, Table, Widget } from "../ui";
import type { ArenaWidget } from "./layout";
import { RaceBars } from "./RaceBars";
import { RaceMeasureSelect } from "./RaceMeasureSelect";

const CAPTIONS: Record<RaceMeasure, string> = {
  turnaround:
    "Average turnaround of a task: its execution and its waiting in queues, shortest first. The line is the Oracle's execution time.",
  time: "Average execution time of a task, fastest first; waiting is beside it. The line is the Oracle: the best possible execution time.",
};

export const comparison: ArenaWidget = {
  id: "comparison",
  title: "Race",
  caption: CAPTIONS.turnaround,
  component: Comparison,
  sizes: { wall: [5, 11], wide: [5, 11], medium: [6, 10] },
};

interface Row extends ComparisonRow {
  /** Makespan over the bound; null until the run is complete. */
  vs_bound: number | null;
}

const COLUMNS: Column<Row>[] = [
  schedulerColumn((row) => row.name),
  failedColumn(),
  numberColumn("avg_turnaround", "Avg turnaround", seconds, "Execution and waiting"),
  numberColumn("avg_time", "Avg execution", seconds),
  numberColumn("avg_wait", "Avg wait", seconds, "Time in the queues of its cluster"),
  numberColumn("turnaround_p95", "p95 turnaround", seconds, "95 % of the tasks were not slower"),
  numberColumn("turnaround_p99", "p99 turnaround", seconds, "99 % of the tasks were not slower"),
  numberColumn(
    "vs_oracle",
    "Execution vs Oracle",
    overOracle,
    "Total execution time compared with the Oracle, on the same tasks",
  ),
  numberColumn("avg_energy", "Avg energy", joules),
  numberColumn("avg_cost", "Avg cost", dollars),
  numberColumn("avg_slowdown", "Slowdown", number, "Mean turnaround over the time on the fastest device"),
  numberColumn("makespan", "Makespan", seconds, "Simulated time at which the last task ended"),
  numberColumn("vs_bound", "Makespan / bound", overBound, "1×: no schedule is shorter. Known when the run is complete"),
  numberColumn("gpu_share", "Accelerated", percent, "Share of tasks that used an accelerator"),
  numberColumn("total_time", "Total execution", seconds),
  numberColumn("total_energy", "Total energy", joules),
  numberColumn("total_cost", "Total cost", dollars),
  numberColumn("tasks", "Tasks"),
  numberColumn("model_version", "Model", modelVersion),
];

export function Comparison() {
  const rows = useComparison();
  const measure = useRaceMeasure();
  const bound = useRunPolled<RunDetail>("").data?.bound ?? null;
  return (
    <Widget
      {...comparison}
      title={`Race by ${RACE_MEASURES[measure]}`}
      caption={CAPTIONS[measure]}
      loading={rows.length === 0}
      actions={<RaceMeasureSelect testId="race-by" />}
      table={
        <Table
          key={measure}
          caption="Totals and averages of every scheduler"
          columns={COLUMNS}
          rows={rows.map((row) => ({ ...row, vs_bound: ratio(row.makespan, bound) }))}
          rowKey={(row) => row.name}
          rowAttributes={(row) => ({ "data-scheduler": row.name })}
          sort={{ key: `avg_${measure}`, descending: false }}
        />
      }
      scroll
    >
      <RaceBars rows={rows} measure={measure} />
    </Widget>
  );
}
