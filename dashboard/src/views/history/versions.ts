/** The versions of a run's learners: which one serves, and what each is judged by. */
import type { ModelRow } from "../../api/types";

export interface Measure {
  key: "score" | "loss";
  label: string;
  of: (row: ModelRow) => number | null;
}

const SCORE: Measure = { key: "score", label: "Score", of: (row) => row.score };
const LOSS: Measure = { key: "loss", label: "Loss", of: lossOf };

function lossOf(row: ModelRow): number | null {
  const loss = typeof row.metrics === "object" ? row.metrics["loss"] : undefined;
  return loss ?? null;
}

/** The forest is judged on results that it has not seen; the agent has only its loss. */
export function measureOf(rows: readonly ModelRow[]): Measure {
  const scored = rows.some((row) => row.score !== null);
  return !scored && rows.some((row) => lossOf(row) !== null) ? LOSS : SCORE;
}

export function judged(rows: readonly ModelRow[], measure: Measure): ModelRow[] {
  return rows.filter((row) => measure.of(row) !== null);
}

export function learnersOf(rows: readonly ModelRow[]): string[] {
  return [...new Set(rows.map((row) => row.name))].sort();
}

/** Of each learner the newest version that was shipped. */
export function inService(rows: readonly ModelRow[]): Record<string, number> {
  const newest: Record<string, number> = {};
  for (const row of rows) {
    if (row.shipped) newest[row.name] = Math.max(newest[row.name] ?? 0, row.version);
  }
  return newest;
}

/** Unix seconds. */
export function createdAt(row: ModelRow): number {
  return Date.parse(row.created_at) / 1000;
}
