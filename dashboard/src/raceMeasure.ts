/** What the race is sorted by and a task is won by: turnaround or execution time, kept in the address. */
import { isReference } from "./schedulers";
import { setParameters, useParameter } from "./url";

export type RaceMeasure = "turnaround" | "time";

export const RACE_MEASURES: Record<RaceMeasure, string> = { turnaround: "turnaround", time: "execution time" };
const DEFAULT: RaceMeasure = "turnaround";

export function useRaceMeasure(): RaceMeasure {
  return useParameter("by") === "time" ? "time" : DEFAULT;
}

export function setRaceMeasure(measure: string): void {
  setParameters({ by: measure === DEFAULT ? null : measure });
}

interface Averages {
  name: string;
  tasks: number;
  avg_time: number | null;
  avg_turnaround: number | null;
}

/** Infinite without a result. */
export function averageOf(row: Averages, measure: RaceMeasure): number {
  return (row.tasks > 0 ? row[`avg_${measure}`] : null) ?? Number.POSITIVE_INFINITY;
}

/** Best first; schedulers without a result last. */
export function inOrder<Row extends Averages>(rows: Row[], measure: RaceMeasure): Row[] {
  return [...rows].sort((left, right) => {
    const [a, b] = [averageOf(left, measure), averageOf(right, measure)];
    return a === b ? left.name.localeCompare(right.name) : a - b;
  });
}

/** References are no competitors. */
export function bestCompetitor<Row extends Averages>(rows: Row[], measure: RaceMeasure): Row | undefined {
  return inOrder(rows, measure).find((row) => row.tasks > 0 && !isReference(row.name));
}
