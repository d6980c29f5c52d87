/** The differences between two runs: their specs, and the averages of every scheduler. */
import type { TotalsAt } from "./sameTasks";

export interface SpecDifference {
  path: string;
  a: unknown;
  b: unknown;
}

function leaves(value: unknown, path: string, into: Map<string, unknown>): void {
  const values = Array.isArray(value) && value.some((each) => typeof each !== "object");
  if (typeof value === "object" && value !== null && !values && Object.keys(value).length > 0) {
    for (const [key, inner] of Object.entries(value)) {
      leaves(inner, path ? `${path}.${key}` : key, into);
    }
  } else if (path) {
    into.set(path, value);
  }
}

/** Every field that differs, in the order of the specs; a list of names or numbers is one field. */
export function specDifferences(a: object, b: object): SpecDifference[] {
  const left = new Map<string, unknown>();
  const right = new Map<string, unknown>();
  leaves(a, "", left);
  leaves(b, "", right);
  return [...new Set([...left.keys(), ...right.keys()])]
    .filter((path) => JSON.stringify(left.get(path)) !== JSON.stringify(right.get(path)))
    .map((path) => ({ path, a: left.get(path), b: right.get(path) }));
}

export interface Change {
  name: string;
  a: TotalsAt | null;
  b: TotalsAt | null;
  /** B / A − 1: -0.1 is ten per cent less in B. Null when one is missing or A is 0. */
  turnaround: number | null;
  time: number | null;
  energy: number | null;
  cost: number | null;
  /** The change of the ratio to the Oracle, which is comparable between workloads. */
  vsOracle: number | null;
}

function relative(a: number | undefined, b: number | undefined): number | null {
  return a === undefined || b === undefined || a === 0 ? null : b / a - 1;
}

/** One row per scheduler of either run, those of A first. */
export function changes(a: Record<string, TotalsAt>, b: Record<string, TotalsAt>): Change[] {
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])];
  return names.map((name) => {
    const [left, right] = [a[name], b[name]];
    const [before, after] = [left?.vs_oracle ?? null, right?.vs_oracle ?? null];
    return {
      name,
      a: left ?? null,
      b: right ?? null,
      turnaround: relative(left?.avg_turnaround, right?.avg_turnaround),
      time: relative(left?.avg_time, right?.avg_time),
      energy: relative(left?.avg_energy, right?.avg_energy),
      cost: relative(left?.avg_cost, right?.avg_cost),
      vsOracle: before === null || after === null ? null : after - before,
    };
  });
}

/** Schedulers that are closer to the Oracle in B, and further from it, largest change first. */
export function oracleChanges(rows: Change[]): { closer: Change[]; further: Change[] } {
  const changes = rows.flatMap((row) => (row.vsOracle === null ? [] : [{ row, by: row.vsOracle }]));
  const by = (sign: number) =>
    changes
      .filter((change) => change.by * sign > 0.001)
      .sort((left, right) => (right.by - left.by) * sign)
      .map((change) => change.row);
  return { closer: by(-1), further: by(1) };
}
