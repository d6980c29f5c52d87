/**
 * The regret of a scheduler in each interval of a run. A total hides recent changes: a learner that
 * was bad in its first hundred tasks has a bad total for a long time.
 */
import { type Metric, totalAt } from "../../api/progress";
import type { Track } from "../../api/types";

export interface Interval {
  /** The number of tasks at its end. */
  tasks: number;
  /** The scheduler's cost divided by the Oracle's. */
  ratio: number;
}

/** One ratio for each of `intervals` equal parts of the tasks that both have results for. */
export function regret(series: Track, oracle: Track, metric: Metric, intervals: number): Interval[] {
  const end = Math.min(series.tasks.at(-1) ?? 0, oracle.tasks.at(-1) ?? 0);
  const count = Math.min(intervals, series.tasks.length, oracle.tasks.length);
  const ratios: Interval[] = [];
  let before = { own: 0, best: 0 };
  for (let part = 1; part <= count; part += 1) {
    const tasks = (end * part) / count;
    const own = totalAt(series, metric, tasks);
    const best = totalAt(oracle, metric, tasks);
    if (own === undefined || best === undefined) continue;
    const [spent, least] = [own - before.own, best - before.best];
    if (least > 0) ratios.push({ tasks: Math.round(tasks), ratio: spent / least });
    before = { own, best };
  }
  return ratios;
}
