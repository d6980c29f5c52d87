/** The model versions of a run: which one is in use, and by which number they are compared. */
import type { StoredModel } from "./types";

export interface Measure {
  key: "score" | "loss";
  label: string;
  of: (row: StoredModel) => number | null;
}

const SCORE: Measure = { key: "score", label: "Score", of: (row) => row.score };
const LOSS: Measure = { key: "loss", label: "Loss", of: lossOf };

function lossOf(row: StoredModel): number | null {
  const { loss } = row.metrics;
  return typeof loss === "number" ? loss : null;
}

/** The forest has a score on results that were not used for training; the agent only its loss. */
export function measureOf(rows: readonly StoredModel[]): Measure {
  const scored = rows.some((row) => row.score !== null);
  return !scored && rows.some((row) => lossOf(row) !== null) ? LOSS : SCORE;
}

export function measured(rows: readonly StoredModel[], measure: Measure): StoredModel[] {
  return rows.filter((row) => measure.of(row) !== null);
}

export function learnersOf(rows: readonly StoredModel[]): string[] {
  return [...new Set(rows.map((row) => row.name))].sort();
}

/** The newest published version of each learner. */
export function versionsInUse(rows: readonly StoredModel[]): Record<string, number> {
  const newest: Record<string, number> = {};
  for (const row of rows) {
    if (row.shipped) newest[row.name] = Math.max(newest[row.name] ?? 0, row.version);
  }
  return newest;
}

/** Unix seconds. */
export function createdAt(row: StoredModel): number {
  return Date.parse(row.created_at) / 1000;
}

export function outcome(row: StoredModel): string {
  return row.shipped ? "published" : "not published";
}
