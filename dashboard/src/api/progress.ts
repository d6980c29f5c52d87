/** The cumulative totals of a scheduler over the tasks of a run. */
import type { Track } from "./types";

export type Metric = "time" | "turnaround" | "energy" | "cost";

export function totals(series: Track, metric: Metric): number[] {
  return series[`total_${metric}`];
}

/** The points of a cumulative total, starting at 0. */
export function totalPoints(series: Track, metric: Metric): [tasks: number, total: number][] {
  const points = totals(series, metric).map((total, at): [number, number] => [series.tasks[at] ?? 0, total]);
  return points.length ? [[0, 0], ...points] : [];
}

/** A cumulative total after `tasks` tasks, interpolated; undefined after the last point. */
export function totalAt(series: Track, metric: Metric, tasks: number): number | undefined {
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
