/** The gateway's problems ("workload.arrival_rate: Input should be ..."), assigned to the fields of the form. */

import { type Draft, valueAt } from "./draft";

export interface SortedProblems {
  /** By the path of the field. */
  fields: Record<string, string[]>;
  /** Problems of fields that the form does not have. */
  others: string[];
}

const LOCATED = /^([A-Za-z_]\w*(?:\.\w+)*): (.+)$/s;

/** The field of a path: itself, or the nearest one above it. */
function fieldOf(path: string, fields: readonly string[]): string | undefined {
  const matches = fields.filter((field) => path === field || path.startsWith(`${field}.`));
  return matches.sort((left, right) => right.length - left.length)[0];
}

/** Without the problems of fields that have changed since they were checked: those may be solved. */
export function currentProblems(
  fields: Record<string, string[]>,
  draft: Draft,
  checked: Draft,
): Record<string, string[]> {
  const unchanged = (path: string) => JSON.stringify(valueAt(draft, path)) === JSON.stringify(valueAt(checked, path));
  return Object.fromEntries(Object.entries(fields).filter(([path]) => unchanged(path)));
}

export function sortProblems(problems: readonly string[], fields: readonly string[]): SortedProblems {
  const sorted: SortedProblems = { fields: {}, others: [] };
  for (const problem of problems) {
    const [, path, message] = LOCATED.exec(problem) ?? [];
    const field = path === undefined ? undefined : fieldOf(path, fields);
    if (path === undefined || message === undefined || field === undefined) {
      sorted.others.push(problem);
      continue;
    }
    const part = path.slice(field.length + 1);
    sorted.fields[field] ??= [];
    sorted.fields[field].push(part ? `${part}: ${message}` : message);
  }
  return sorted;
}
