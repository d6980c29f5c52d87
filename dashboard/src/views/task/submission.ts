/** The request that submits a task, from the fields of the form. */
import { parseNumber } from "../newrun/draft";

export interface TaskInput {
  size: string;
  compute_intensity: string;
  memory_required: string;
  dependencies: string;
  width: string;
  kind: string;
}

export const EXAMPLE: TaskInput = {
  size: "960",
  compute_intensity: "0.75",
  memory_required: "81",
  dependencies: "",
  width: "",
  kind: "",
};

/** Text that is not a number is sent as it is: the gateway says what is wrong with it. */
export function submission(run: string, input: TaskInput): object {
  const parents = input.dependencies.split(/[\s,;#]+/).filter(Boolean);
  return {
    run,
    tasks: [
      {
        size: parseNumber(input.size) ?? "",
        compute_intensity: parseNumber(input.compute_intensity) ?? "",
        memory_required: parseNumber(input.memory_required) ?? "",
        dependencies: parents.map((parent) => parseNumber(parent)),
        ...(input.width && { width: parseNumber(input.width) }),
        ...(input.kind && { kind: input.kind }),
      },
    ],
  };
}
