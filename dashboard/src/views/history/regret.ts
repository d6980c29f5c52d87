/**
 * The regret of a scheduler in each interval of a run. A total hides recent changes: a learner that
 * was bad in its first hundred tasks has a bad total for a long time.
 */
import { type Metric, totalAt } from "../../api/progress";
import type { Track } from "../../api/types";
import { CLAIRVOYANT, ORACLE } from "../../schedulers";

/**
 * The scheduler that others are compared with. The Oracle is the floor of execution time but sees no
 * queues, so the clairvoyant scheduler is the better measure of a turnaround, where it runs.
 */
export function referenceOf(schedulers: Record<string, Track>, metric: Metric): string | null {
  if (metric === "turnaround" && CLAIRVOYANT in schedulers) return CLAIRVOYANT;
  return ORACLE in schedulers ? ORACLE : null;
}

export interface Interval {
  /** The number of tasks at its end. */
  tasks: number;
  /** The scheduler's cost divided by the reference's. */
  ratio: number;
}

/** One ratio for each of `intervals` equal parts of the tasks that both have results for. */
export function regret(series: Track, reference: Track, metric: Metric, intervals: number): Interval[] {
  const end = Math.min(series.tasks.at(-1) ?? 0, reference.tasks.at(-1) ?? 0);
  const count = Math.min(intervals, series.tasks.length, reference.tasks.length);
  const ratios: Interval[] = [];
  let before = { own: 0, best: 0 };
  for (let part = 1; part <= count; part += 1) {
    const tasks = (end * part) / count;
    const own = totalAt(series, metric, tasks);
    const best = totalAt(reference, metric, tasks);
    if (own === undefined || best === undefined) continue;
    const [spent, least] = [own - before.own, best - before.best];
    if (least > 0) ratios.push({ tasks: Math.round(tasks), ratio: spent / least });
    before = { own, best };
  }
  return ratios;
}
