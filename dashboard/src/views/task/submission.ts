/** A task of a person's own, from what was typed. */
import { typedNumber } from "../newrun/draft";

export interface Typed {
  size: string;
  compute_intensity: string;
  memory_required: string;
  dependencies: string;
}

export const EXAMPLE: Typed = {
  size: "960",
  compute_intensity: "0.75",
  memory_required: "81",
  dependencies: "",
};

/** The body for the gateway, which checks it: text that is no number goes as it is. */
export function submission(run: string, typed: Typed): object {
  const parents = typed.dependencies.split(/[\s,;#]+/).filter(Boolean);
  return {
    run,
    tasks: [
      {
        size: typedNumber(typed.size) ?? "",
        compute_intensity: typedNumber(typed.compute_intensity) ?? "",
        memory_required: typedNumber(typed.memory_required) ?? "",
        dependencies: parents.map((parent) => typedNumber(parent)),
      },
    ],
  };
}
