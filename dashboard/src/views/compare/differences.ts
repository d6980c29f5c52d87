/** What differs between two runs: their specs, and what every scheduler made of them. */
import type { Standing } from "../../api/types";

export interface SpecDifference {
  path: string;
  a: unknown;
  b: unknown;
}

function leaves(value: unknown, path: string, into: Map<string, unknown>): void {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    for (const [key, inner] of Object.entries(value)) {
      leaves(inner, path ? `${path}.${key}` : key, into);
    }
  } else if (path) {
    into.set(path, value);
  }
}

/** Every field that differs, in the order of the specs; lists are one field. */
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
  a: Standing | null;
  b: Standing | null;
  /** B over A, less one: -0.1 is ten per cent less in B. Null where one of them is missing or 0. */
  time: number | null;
  energy: number | null;
  cost: number | null;
  /** The change of the distance to the Oracle, which a harder workload does not blur. */
  vsOracle: number | null;
}

function relative(a: number | undefined, b: number | undefined): number | null {
  return a === undefined || b === undefined || a === 0 ? null : b / a - 1;
}

/** One row a scheduler of either run, those of A first. */
export function changes(a: Record<string, Standing>, b: Record<string, Standing>): Change[] {
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])];
  return names.map((name) => {
    const [left, right] = [a[name], b[name]];
    const [before, after] = [left?.vs_oracle ?? null, right?.vs_oracle ?? null];
    return {
      name,
      a: left ?? null,
      b: right ?? null,
      time: relative(left?.avg_time, right?.avg_time),
      energy: relative(left?.avg_energy, right?.avg_energy),
      cost: relative(left?.avg_cost, right?.avg_cost),
      vsOracle: before === null || after === null ? null : after - before,
    };
  });
}

export interface Verdict {
  gained: Change[];
  lost: Change[];
}

/** Who came closer to the Oracle and who fell back, most first; a thousandth is no change. */
export function verdict(rows: Change[]): Verdict {
  const moved = rows.flatMap((row) => (row.vsOracle === null ? [] : [{ row, by: row.vsOracle }]));
  const by = (sign: number) =>
    moved
      .filter((change) => change.by * sign > 0.001)
      .sort((left, right) => (right.by - left.by) * sign)
      .map((change) => change.row);
  return { gained: by(-1), lost: by(1) };
}
