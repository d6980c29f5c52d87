/** A run spec in two sentences, to check before starting. */
import type { RunSpec } from "../../api/types";
import { deviceCounts, nodeNames, typeLabel } from "../../devices";
import { count, number } from "../../format";

export function summary(spec: RunSpec): string {
  const { workload } = spec;
  const subject = spec.schedulers.length ? plural(spec.schedulers.length, "scheduler") : "Every deployed scheduler";
  const verb = spec.schedulers.length === 1 || spec.schedulers.length === 0 ? "gets" : "get";
  const amount = spec.tasks === null ? "an endless stream of" : count(spec.tasks);
  const pace = spec.pace === "max" ? "as fast as possible" : `${plain(spec.pace)} per second`;
  const drift = workload.drift.map((step) => `, ${step.preset} from task ${count(step.after)} on`).join("");
  return `${subject} ${verb} ${amount} ${workload.preset} tasks${drift}, ${pace}, each on a cluster of ${clusterText(spec.cluster)}. Seed ${spec.seed}: the same spec and seed give the same tasks.`;
}

/** The short form with its memory; any other cluster by its device types. */
export function clusterText(cluster: RunSpec["cluster"]): string {
  if (cluster.devices.length === 0) {
    return `${plural(cluster.cpus, "CPU")} and ${plural(cluster.gpus, "GPU")} of ${plain(cluster.gpu_memory_mb)} MB`;
  }
  const types = [...deviceCounts(cluster)].map(([type, devices]) => `${count(devices)} ${typeLabel(type)}`);
  const nodes = nodeNames(cluster).length;
  return nodes === 1 ? list(types) : `${count(nodes)} nodes with ${list(types)}`;
}

function list(items: string[]): string {
  const last = items.at(-1) ?? "";
  return items.length > 1 ? `${items.slice(0, -1).join(", ")} and ${last}` : last;
}

function plural(many: number, noun: string): string {
  return `${count(many)} ${noun}${many === 1 ? "" : "s"}`;
}

function plain(value: number): string {
  return Number.isInteger(value) ? count(value) : number(value);
}
