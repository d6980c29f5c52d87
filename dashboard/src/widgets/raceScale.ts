/** How long the bars of the race are. Under load the longest turnaround may be 300 times the shortest. */
import type { ComparisonRow } from "../live";
import type { RaceMeasure } from "../raceMeasure";

/** Turnarounds of more than this many times the shortest are cut. */
const MOST = 10;
/** The chart has at least this many times the shortest. */
const LEAST = 3;
/** What cut bars are longer than the longest complete one. */
const ROOM = 1.25;
/** Sorted by execution time, the chart has this many times the longest one. */
const EXECUTIONS = 2;

/** Seconds at the right end of the chart: bars that are longer are cut there, but never in their execution. */
export function scaleEnd(rows: ComparisonRow[], measure: RaceMeasure): number {
  const done = rows.filter((row) => row.tasks > 0);
  const turnarounds = done.map((row) => row.avg_turnaround ?? 0);
  const [shortest, longest] = [Math.min(...turnarounds), Math.max(...turnarounds, 1e-12)];
  const execution = Math.max(...done.map((row) => row.avg_time ?? 0), 1e-12);
  if (measure === "time") return Math.min(longest, EXECUTIONS * execution);
  if (longest <= MOST * shortest) return longest;
  const complete = Math.max(...turnarounds.filter((each) => each <= MOST * shortest));
  return Math.max(execution, ROOM * complete, LEAST * shortest);
}
