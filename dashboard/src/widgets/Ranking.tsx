import { useMemo } from "react";
import type { Weights } from "../api/types";
import { dollars, joules, percent, score, seconds } from "../format";
import { type ComparisonRow, useComparison } from "../live";
import {
  Badge,
  type Column,
  FailedBadge,
  failedColumn,
  numberColumn,
  SchedulerName,
  schedulerColumn,
  Table,
  Widget,
} from "../ui";
import { MEASURES, useWeights } from "../weights";
import type { ArenaWidget } from "./layout";

export const ranking: ArenaWidget = {
  id: "ranking",
  title: "Ranking by your weights",
  caption: "Score 1 is the best in everything you weigh. Pareto: no scheduler is better in time, energy and cost.",
  component: Ranking,
  sizes: { wall: [3, 11], wide: [3, 11], medium: [3, 11] },
};

const PRESETS: { label: string; weights: Weights }[] = [
  { label: "Time", weights: { time: 100, energy: 0, cost: 0 } },
  { label: "Energy", weights: { time: 0, energy: 100, cost: 0 } },
  { label: "Cost", weights: { time: 0, energy: 0, cost: 100 } },
  { label: "Balanced", weights: { time: 100, energy: 100, cost: 100 } },
];

const COLUMNS: Column<ComparisonRow>[] = [
  numberColumn("rank", "Rank"),
  schedulerColumn((row) => row.name),
  numberColumn("score", "Score", score),
  numberColumn("avg_time", "Avg time", seconds),
  numberColumn("avg_energy", "Avg energy", joules),
  numberColumn("avg_cost", "Avg cost", dollars),
  numberColumn("avg_turnaround", "Avg turnaround", seconds, "Wait and execution"),
  numberColumn("turnaround_p95", "p95 turnaround", seconds, "95 % of the tasks were not slower"),
  failedColumn(),
  { key: "pareto", header: "Pareto", value: (row) => (row.pareto ? "yes" : "no") },
];

export function Ranking() {
  const rows = useComparison();
  const ranked = useMemo(() => [...rows].sort((left, right) => left.rank - right.rank), [rows]);
  return (
    <Widget
      {...ranking}
      loading={rows.length === 0}
      table={
        <Table
          caption="Ranking by your weights"
          columns={COLUMNS}
          rows={ranked}
          rowKey={(row) => row.name}
          rowAttributes={(row) => ({ "data-scheduler": row.name })}
        />
      }
      scroll
    >
      <Sliders />
      <ol className="mt-3">
        {ranked.map((row) => (
          <li
            key={row.name}
            data-scheduler={row.name}
            data-rank={row.rank}
            className="num flex items-center gap-2.5 border-t border-line py-[0.3rem] text-[0.8125rem]"
          >
            <span className="w-5 text-right text-muted">{row.rank}</span>
            <span className="min-w-0 flex-1 truncate">
              <SchedulerName name={row.name} />
            </span>
            <FailedBadge failed={row.failed} tasks={row.tasks} />
            {row.pareto && (
              <Badge
                tone="good"
                title="No other scheduler is at least as good in time, energy and cost, and better in one of them"
              >
                Pareto
              </Badge>
            )}
            <span className="w-14 text-right font-semibold" data-field="score" data-value={row.score}>
              {score(row.score)}
            </span>
          </li>
        ))}
      </ol>
    </Widget>
  );
}

function Sliders() {
  const [weights, setWeights] = useWeights();
  const sum = weights.time + weights.energy + weights.cost;
  const move = (measure: keyof Weights, value: number) => {
    const next = { ...weights, [measure]: value };
    // At least one weight has to stay above 0.
    if (next.time + next.energy + next.cost > 0) setWeights(next);
  };
  return (
    <div>
      <div className="mb-2 flex flex-wrap gap-1" role="group" aria-label="Common weights">
        {PRESETS.map((preset) => {
          const active = MEASURES.every((each) => weights[each] === preset.weights[each]);
          return (
            <button
              key={preset.label}
              type="button"
              aria-pressed={active}
              onClick={() => setWeights(preset.weights)}
              className="rounded-full border border-line px-2.5 py-0.5 text-xs text-muted hover:text-ink aria-pressed:border-accent/50 aria-pressed:bg-accent/10 aria-pressed:text-accent"
            >
              {preset.label}
            </button>
          );
        })}
      </div>
      {MEASURES.map((each) => (
        <label key={each} className="flex items-center gap-3 text-xs text-muted">
          <span className="w-12 capitalize">{each}</span>
          <input
            type="range"
            min={0}
            max={100}
            step={1}
            value={weights[each]}
            data-testid={`weight-${each}`}
            aria-valuetext={percent(weights[each] / sum)}
            onChange={(event) => move(each, Number(event.target.value))}
            className="h-6 min-w-0 flex-1 accent-accent"
          />
          <span className="num w-12 text-right text-ink">{percent(weights[each] / sum, 0)}</span>
        </label>
      ))}
    </div>
  );
}
