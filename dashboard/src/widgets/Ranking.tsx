import { useMemo, useRef, useState } from "react";
import type { Weights } from "../api/types";
import { dollars, joules, percent, score, seconds } from "../format";
import { type ComparisonRow, useComparison } from "../live";
import {
  Badge,
  type Column,
  failedColumn,
  numberColumn,
  RankedName,
  schedulerColumn,
  Table,
  Term,
  Widget,
} from "../ui";
import { describeWeights, MEASURE_LABELS, MEASURES, totalWeight, useWeights } from "../weights";
import { LearnersObjective } from "./LearnersObjective";
import type { ArenaWidget } from "./layout";

export const ranking: ArenaWidget = {
  id: "ranking",
  title: "Ranking by your weights",
  caption: "Score 1 is the best in everything you weigh. Pareto: no competitor is better in everything.",
  component: Ranking,
  sizes: { wall: [3, 11], wide: [3, 11], medium: [3, 11] },
};

const NOTHING: Weights = { turnaround: 0, time: 0, energy: 0, cost: 0 };

const PRESETS: { label: string; weights: Weights }[] = [
  ...MEASURES.map((measure) => ({ label: MEASURE_LABELS[measure], weights: { ...NOTHING, [measure]: 100 } })),
  { label: "Balanced", weights: { ...NOTHING, turnaround: 100, energy: 100, cost: 100 } },
];

const COLUMNS: Column<ComparisonRow>[] = [
  numberColumn("rank", "Rank"),
  schedulerColumn((row) => row.name),
  numberColumn("score", "Score", score),
  numberColumn("avg_turnaround", "Avg turnaround", seconds, "Execution and waiting"),
  numberColumn("turnaround_p95", "p95 turnaround", seconds, "95 % of the tasks were not slower"),
  numberColumn("avg_time", "Avg execution", seconds),
  numberColumn("avg_energy", "Avg energy", joules),
  numberColumn("avg_cost", "Avg cost", dollars),
  failedColumn(),
  { key: "pareto", header: "Pareto", value: (row) => (row.pareto ? "yes" : "no") },
];

/** By score: a reference has no rank. Scores are rounded, so equal ones follow their rank. */
export function byScore(rows: ComparisonRow[]): ComparisonRow[] {
  const key = (row: ComparisonRow) => row.score ?? Number.MAX_VALUE;
  return [...rows].sort((left, right) => key(left) - key(right) || (left.rank ?? 0) - (right.rank ?? 0));
}

export function Ranking() {
  const rows = useComparison();
  const [weights] = useWeights();
  const [moving, setMoving] = useState(false);
  const ranked = useHeldOrder(
    useMemo(() => byScore(rows), [rows]),
    moving,
  );
  return (
    <Widget
      {...ranking}
      caption={`By ${describeWeights(weights)}. ${ranking.caption}`}
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
      <Sliders onMoving={setMoving} />
      <LearnersObjective />
      <p className="mt-2 flex justify-between px-1 text-[0.6875rem] text-muted">
        <Term name="pareto">Pareto</Term>
        <Term name="score">Score</Term>
      </p>
      <ol>
        {ranked.map((row) => (
          <li
            key={row.name}
            data-scheduler={row.name}
            data-rank={row.rank ?? ""}
            className="num flex items-center gap-2.5 border-t border-line py-[0.2rem] text-[0.8125rem]"
          >
            <span className="w-5 shrink-0 text-right text-muted">{row.rank ?? "–"}</span>
            <span className="min-w-0 flex-1">
              <RankedName row={row}>{row.pareto && <ParetoBadge />}</RankedName>
            </span>
            <span className="w-14 text-right font-semibold" data-field="score" data-value={row.score}>
              {score(row.score)}
            </span>
          </li>
        ))}
      </ol>
    </Widget>
  );
}

function ParetoBadge() {
  return (
    <Badge
      tone="good"
      title="No other competitor is at least as good in turnaround, execution time, energy and cost, and better in one of them"
    >
      Pareto
    </Badge>
  );
}

/** While a slider moves, the rows keep their places and only their scores change. */
function useHeldOrder(rows: ComparisonRow[], held: boolean): ComparisonRow[] {
  const order = useRef<string[]>([]);
  if (!held || order.current.length !== rows.length) order.current = rows.map((row) => row.name);
  const byName = new Map(rows.map((row) => [row.name, row]));
  return order.current.flatMap((name) => byName.get(name) ?? []);
}

function Sliders({ onMoving }: { onMoving: (moving: boolean) => void }) {
  const [weights, setWeights] = useWeights();
  const sum = totalWeight(weights);
  const move = (measure: keyof Weights, value: number) => {
    const next = { ...weights, [measure]: value };
    // At least one weight has to stay above 0.
    if (totalWeight(next) > 0) setWeights(next);
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
              className="rounded-full border border-line px-2 py-0.5 text-[0.6875rem] text-muted hover:text-ink aria-pressed:border-accent/50 aria-pressed:bg-accent/10 aria-pressed:text-accent"
            >
              {preset.label}
            </button>
          );
        })}
      </div>
      {MEASURES.map((each) => (
        <label key={each} className="flex items-center gap-3 text-xs text-muted">
          <span className="w-17">{MEASURE_LABELS[each]}</span>
          <input
            type="range"
            min={0}
            max={100}
            step={1}
            value={weights[each]}
            data-testid={`weight-${each}`}
            aria-valuetext={percent(weights[each] / sum)}
            onChange={(event) => move(each, Number(event.target.value))}
            onPointerDown={() => onMoving(true)}
            onPointerUp={() => onMoving(false)}
            onPointerCancel={() => onMoving(false)}
            className="h-5 min-w-0 flex-1 accent-accent"
          />
          <span className="num w-12 text-right text-ink">{percent(weights[each] / sum, 0)}</span>
        </label>
      ))}
    </div>
  );
}
