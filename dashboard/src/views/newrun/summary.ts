/** A run spec in one or two plain sentences, so that a person can check what they are about to start. */
import type { RunSpec } from "../../api/types";
import { count, number } from "../../format";

export function summary(spec: RunSpec): string {
  const { cluster, workload } = spec;
  const who = spec.schedulers.length ? plural(spec.schedulers.length, "scheduler") : "Every scheduler that is deployed";
  const verb = spec.schedulers.length === 1 || spec.schedulers.length === 0 ? "gets" : "get";
  const much = spec.tasks === null ? "an endless stream of" : count(spec.tasks);
  const pace = spec.pace === "max" ? "as fast as they can be done" : `${plain(spec.pace)} a second`;
  const node = `${plural(cluster.cpus, "CPU")} and ${plural(cluster.gpus, "GPU")} of ${plain(cluster.gpu_memory_mb)} MB`;
  const drift = workload.drift.map((step) => `, ${step.preset} from task ${count(step.after)} on`).join("");
  return `${who} ${verb} ${much} ${workload.preset} tasks${drift}, ${pace}, each on ${node} of its own. Seed ${spec.seed}: the same spec and seed give the same tasks.`;
}

function plural(many: number, noun: string): string {
  return `${count(many)} ${noun}${many === 1 ? "" : "s"}`;
}

function plain(value: number): string {
  return Number.isInteger(value) ? count(value) : number(value);
}
