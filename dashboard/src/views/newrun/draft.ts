/**
 * The draft of a run: the spec as plain data, holding only what the person has set. Form and JSON
 * are two views of it, so a field that the form does not know survives a switch between them.
 */

export type Draft = { [field: string]: unknown };

function isObject(value: unknown): value is Draft {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What stands at a path such as `workload.arrival_rate`; undefined when nothing does. */
export function valueAt(data: unknown, path: string): unknown {
  return path
    .split(".")
    .reduce<unknown>((at, key) => (isObject(at) ? at[key] : undefined), data);
}

/** A copy with `value` at `path`; undefined takes the field out, and groups that it leaves empty. */
export function withValue(draft: Draft, path: string, value: unknown): Draft {
  const [key = "", ...rest] = path.split(".");
  const below = isObject(draft[key]) ? draft[key] : {};
  const next = rest.length ? withValue(below, rest.join("."), value) : value;
  const empty = next === undefined || (rest.length > 0 && Object.keys(next as Draft).length === 0);
  const { [key]: _old, ...others } = draft;
  if (empty) return others;
  return key in draft ? { ...draft, [key]: next } : { ...others, [key]: next };
}

/** A preset brings its own mix: one that was written for another preset goes. */
export function withPreset(draft: Draft, preset: string | undefined): Draft {
  return withValue(withValue(draft, "workload.mix", undefined), "workload.preset", preset);
}

/**
 * What a person typed into a field of numbers. Text that is no number is kept as it is, for the
 * gateway to say what is wrong with it; no text at all is no value.
 */
export function typedNumber(text: string): number | string | undefined {
  const trimmed = text.trim();
  if (trimmed === "") return undefined;
  const number = Number(trimmed);
  return Number.isFinite(number) ? number : trimmed;
}

/** The text that stands for a value in a field. */
export function shownText(value: unknown): string {
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
    return { draft: null, problem: "A run spec is an object: { ... }" };
  } catch (error) {
    return { draft: null, problem: error instanceof Error ? error.message : String(error) };
  }
}

/** The part of a full spec that differs from the defaults: what a person would have to write. */
export function withoutDefaults(spec: Draft, defaults: Draft): Draft {
  const draft: Draft = {};
  for (const [key, value] of Object.entries(spec)) {
    const usual = defaults[key];
    if (isObject(value) && isObject(usual)) {
      const inner = withoutDefaults(value, usual);
      if (Object.keys(inner).length) draft[key] = inner;
    } else if (JSON.stringify(value) !== JSON.stringify(usual)) {
      draft[key] = value;
    }
  }
  return draft;
}

/** A run whose tasks were sent in would wait for them for ever: its repetition generates tasks. */
export function generated(spec: Draft): Draft {
  const outside = valueAt(spec, "workload.source") === "submitted";
  return outside ? withValue(spec, "workload.source", "generated") : spec;
}
