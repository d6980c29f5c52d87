/**
 * How far a scheduler was from the Oracle in each stretch of a run. A total hides what changes: a
 * learner that was bad for the first hundred tasks looks bad for long; a stretch shows it as it is now.
 */
import type { ProgressSeries } from "../../api/types";

export type Metric = "time" | "energy" | "cost";

export interface Stretch {
  /** Tasks at its end. */
  tasks: number;
  /** What it cost over what it cost the Oracle; 1 is the Oracle. */
  ratio: number;
}

export function totals(series: ProgressSeries, metric: Metric): number[] {
  return series[`total_${metric}`];
}

/** The points of a running total, from nothing on. */
export function totalPoints(series: ProgressSeries, metric: Metric): [tasks: number, total: number][] {
  const points = totals(series, metric).map((total, at): [number, number] => [series.tasks[at] ?? 0, total]);
  return points.length ? [[0, 0], ...points] : [];
}

/** A running total after `tasks` tasks, straight between its points; undefined outside of them. */
export function totalAt(series: ProgressSeries, metric: Metric, tasks: number): number | undefined {
  const values = totals(series, metric);
  if (tasks === 0) return 0;
  let low = 0;
  let below = 0;
  for (const [at, count] of series.tasks.entries()) {
    const value = values[at];
    if (value === undefined) return undefined;
    if (count === tasks) return value;
    if (count > tasks) return below + ((value - below) * (tasks - low)) / (count - low);
    low = count;
    below = value;
  }
  return undefined;
}

/** One ratio for each of `stretches` even parts of the tasks that both have results for. */
export function regret(
  series: ProgressSeries,
  oracle: ProgressSeries,
  metric: Metric,
  stretches: number,
): Stretch[] {
  const end = Math.min(series.tasks.at(-1) ?? 0, oracle.tasks.at(-1) ?? 0);
  const count = Math.min(stretches, series.tasks.length, oracle.tasks.length);
  const found: Stretch[] = [];
  let before = { own: 0, best: 0 };
  for (let part = 1; part <= count; part += 1) {
    const tasks = (end * part) / count;
    const own = totalAt(series, metric, tasks);
    const best = totalAt(oracle, metric, tasks);
    if (own === undefined || best === undefined) continue;
    const [spent, least] = [own - before.own, best - before.best];
    if (least > 0) found.push({ tasks: Math.round(tasks), ratio: spent / least });
    before = { own, best };
  }
  return found;
}
