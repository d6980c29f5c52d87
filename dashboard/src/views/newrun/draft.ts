/** The draft of a run spec: only the fields that the user has set, including fields the form does not have. */

export type Draft = { [field: string]: unknown };

function isObject(value: unknown): value is Draft {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value at a path such as `workload.arrival_rate`. */
export function valueAt(data: unknown, path: string): unknown {
  return path.split(".").reduce<unknown>((at, key) => (isObject(at) ? at[key] : undefined), data);
}

/** A copy with `value` at `path`; undefined removes the field, and groups that become empty. */
export function withValue(draft: Draft, path: string, value: unknown): Draft {
  const [key = "", ...rest] = path.split(".");
  const below = isObject(draft[key]) ? draft[key] : {};
  const next = rest.length ? withValue(below, rest.join("."), value) : value;
  const empty = next === undefined || (rest.length > 0 && Object.keys(next as Draft).length === 0);
  const { [key]: _old, ...others } = draft;
  if (empty) return others;
  return key in draft ? { ...draft, [key]: next } : { ...others, [key]: next };
}

/** A preset has its own mix: the mix of the previous preset is removed. */
export function withPreset(draft: Draft, preset: string | undefined): Draft {
  return withValue(withValue(draft, "workload.mix", undefined), "workload.preset", preset);
}

/** Without the fields of the platform before, and with those of the next one; null: the default node. */
export function withPlatform(draft: Draft, before: Draft | null, next: Draft | null): Draft {
  const cleared = fieldsOf(before ?? {}).reduce(
    (left, [path]) => withValue(left, path, undefined),
    withValue(draft, "cluster", undefined),
  );
  return fieldsOf(next ?? {}).reduce((left, [path, value]) => withValue(left, path, value), cleared);
}

/** `cluster` is one field: it is replaced as a whole; of other groups each field is. */
function fieldsOf(spec: Draft): [path: string, value: unknown][] {
  return Object.entries(spec).flatMap(([group, value]): [string, unknown][] =>
    group !== "cluster" && isObject(value)
      ? Object.entries(value).map(([key, inner]) => [`${group}.${key}`, inner])
      : [[group, value]],
  );
}

/** Whether `spec` has everything that `part` says; the entries of lists are compared one by one. */
export function contains(spec: unknown, part: unknown): boolean {
  if (Array.isArray(part)) {
    return Array.isArray(spec) && spec.length === part.length && part.every((each, at) => contains(spec[at], each));
  }
  if (isObject(part)) return isObject(spec) && Object.entries(part).every(([key, each]) => contains(spec[key], each));
  return spec === part;
}

/** The value of a number field. Text that is not a number is kept: the gateway says what is wrong with it. */
export function parseNumber(text: string): number | string | undefined {
  const trimmed = text.trim();
  if (trimmed === "") return undefined;
  const number = Number(trimmed);
  return Number.isFinite(number) ? number : trimmed;
}

export function textOf(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

export function toJson(draft: Draft): string {
  return JSON.stringify(draft, null, 2);
}

export type Parsed = { draft: Draft; problem: null } | { draft: null; problem: string };

export function fromJson(text: string): Parsed {
  if (text.trim() === "") return { draft: {}, problem: null };
  try {
    const data: unknown = JSON.parse(text);
    if (isObject(data)) return { draft: data, problem: null };
    return { draft: null, problem: "A run spec is a JSON object: { ... }" };
  } catch (error) {
    return { draft: null, problem: error instanceof Error ? error.message : String(error) };
  }
}

/** The fields of a complete spec that differ from the defaults. */
export function withoutDefaults(spec: Draft, defaults: Draft): Draft {
  const draft: Draft = {};
  for (const [key, value] of Object.entries(spec)) {
    const standard = defaults[key];
    if (isObject(value) && isObject(standard)) {
      const inner = withoutDefaults(value, standard);
      if (Object.keys(inner).length) draft[key] = inner;
    } else if (JSON.stringify(value) !== JSON.stringify(standard)) {
      draft[key] = value;
    }
  }
  return draft;
}

/** A repeated run generates its tasks: one that waits for submitted tasks would never start. */
export function withGeneratedTasks(spec: Draft): Draft {
  const submitted = valueAt(spec, "workload.source") === "submitted";
  return submitted ? withValue(spec, "workload.source", "generated") : spec;
}
