import type { SchedulerTotals } from "../../api/types";
import { ORACLE } from "../../schedulers";

/** The fastest scheduler of a run other than the Oracle. */
export function bestScheduler(totals: Record<string, SchedulerTotals>): (SchedulerTotals & { name: string }) | null {
  const [first] = Object.entries(totals)
    .filter(([name, { results }]) => name !== ORACLE && results > 0)
    .sort(([, left], [, right]) => left.avg_time - right.avg_time);
  return first ? { name: first[0], ...first[1] } : null;
}
