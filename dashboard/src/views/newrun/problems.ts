/** The gateway's problems ("workload.arrival_rate: Input should be ..."), sorted to their fields. */

export interface SortedProblems {
  /** By the path of the form's field. */
  fields: Record<string, string[]>;
  /** What no field of the form can show. */
  others: string[];
}

const LOCATED = /^([A-Za-z_]\w*(?:\.\w+)*): (.+)$/s;

/** The field that shows a path: itself, or the nearest field above it. */
function fieldOf(path: string, fields: readonly string[]): string | undefined {
  const fitting = fields.filter((field) => path === field || path.startsWith(`${field}.`));
  return fitting.sort((left, right) => right.length - left.length)[0];
}

export function sortProblems(
  problems: readonly string[],
  fields: readonly string[],
): SortedProblems {
  const sorted: SortedProblems = { fields: {}, others: [] };
  for (const problem of problems) {
    const [, path, message] = LOCATED.exec(problem) ?? [];
    const field = path === undefined ? undefined : fieldOf(path, fields);
    if (path === undefined || message === undefined || field === undefined) {
      sorted.others.push(problem);
      continue;
    }
    // Below a field, the rest of the path says which of its parts is meant.
    const part = path.slice(field.length + 1);
    (sorted.fields[field] ??= []).push(part ? `${part}: ${message}` : message);
  }
  return sorted;
}
