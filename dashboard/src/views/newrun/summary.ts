/** A run spec in two sentences, to check before starting. */
import type { RunSpec } from "../../api/types";
import { count, number } from "../../format";

export function summary(spec: RunSpec): string {
  const { cluster, workload } = spec;
  const subject = spec.schedulers.length ? plural(spec.schedulers.length, "scheduler") : "Every deployed scheduler";
  const verb = spec.schedulers.length === 1 || spec.schedulers.length === 0 ? "gets" : "get";
  const amount = spec.tasks === null ? "an endless stream of" : count(spec.tasks);
  const pace = spec.pace === "max" ? "as fast as possible" : `${plain(spec.pace)} per second`;
  const node = `${plural(cluster.cpus, "CPU")} and ${plural(cluster.gpus, "GPU")} of ${plain(cluster.gpu_memory_mb)} MB`;
  const drift = workload.drift.map((step) => `, ${step.preset} from task ${count(step.after)} on`).join("");
  return `${subject} ${verb} ${amount} ${workload.preset} tasks${drift}, ${pace}, each on a cluster of ${node}. Seed ${spec.seed}: the same spec and seed give the same tasks.`;
}

function plural(many: number, noun: string): string {
  return `${count(many)} ${noun}${many === 1 ? "" : "s"}`;
}

function plain(value: number): string {
  return Number.isInteger(value) ? count(value) : number(value);
}
