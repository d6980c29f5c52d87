/** What a run works on, in a few words. */
import type { RunSpec } from "./api/types";
import { count } from "./format";

/** `hybrid trace replay` names its runs after the file and a fingerprint: "jobs.swf #1a2b3c4d". */
export function withoutFingerprint(name: string): string {
  return name.replace(/ #[0-9a-f]{8}$/, "");
}

type Worked = Pick<RunSpec, "name" | "workload">;

export function isTrace(spec: Worked): boolean {
  return spec.workload.source === "submitted";
}

/** "hpc", "hpc → cpu_friendly", or the name of a trace. */
export function workloadText(spec: Worked): string {
  if (isTrace(spec)) return spec.name ? `trace ${withoutFingerprint(spec.name)}` : "submitted tasks";
  return [spec.workload.preset, ...spec.workload.drift.map((step) => step.preset)].join(" → ");
}

/** Where the workload changes. */
export function driftText(spec: Worked): string {
  return spec.workload.drift.map((step) => `${step.preset} from task ${count(step.after)} on`).join(", ");
}
