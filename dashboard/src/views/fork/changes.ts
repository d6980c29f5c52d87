/** What a fork changes, from the fields of its form. Pure functions. */
import type { RunSpec } from "../../api/types";

export interface ForkField {
  path: string;
  label: string;
  now: string;
}

/** The settings that a fork is mostly about: how many devices, and how fast tasks arrive. */
export function forkFields(spec: RunSpec): ForkField[] {
  const { devices, gpus, cpus } = spec.cluster;
  const counts: ForkField[] = devices.length
    ? devices.map((device, at) => ({
        path: `cluster.devices.${at}.count`,
        label: devices.some((other, place) => place !== at && other.type === device.type)
          ? `${device.type} in ${device.node}`
          : device.type,
        now: String(device.count),
      }))
    : [
        { path: "cluster.gpus", label: "gpu", now: String(gpus) },
        { path: "cluster.cpus", label: "cpu", now: String(cpus) },
      ];
  if (spec.workload.source === "submitted") return counts;
  return [
    ...counts,
    { path: "workload.arrival_rate", label: "Tasks/s (simulated)", now: String(spec.workload.arrival_rate) },
  ];
}

/** `path=value` for each field that was changed, then the lines of the free text. */
export function changesOf(fields: readonly ForkField[], values: Record<string, string>, lines: string): string[] {
  const changed = fields.flatMap(({ path, now }) => {
    const value = (values[path] ?? "").trim();
    return value && value !== now ? [`${path}=${value}`] : [];
  });
  const more = lines.split("\n").map((line) => line.trim());
  return [...changed, ...more.filter((line) => line !== "")];
}
