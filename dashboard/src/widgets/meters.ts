/** The utilisation and the work of meters, by device, type or node. Pure functions. */
import type { Meter, Utilization } from "../api/types";
import { deviceLabel, typeLabel } from "../devices";

export type GroupBy = "type" | "node" | "device";

/** More areas than this cannot be told apart; a heat strip shows them instead. */
export const MOST_AREAS = 8;
/** More devices than this are listed by type. */
export const MOST_BARS = 16;

/** Several nodes at one meter have no name. */
const ALL_NODES = "all nodes";

/** Meters that are shown as one. */
interface Collected<M> {
  key: string;
  label: string;
  /** Of its first meter: the colour of the group. */
  type: string;
  /** Among the groups of that type. */
  position: number;
  /** How many groups that type has. */
  siblings: number;
  devices: number;
  members: M[];
}

function keyOf(meter: Meter, by: GroupBy): string {
  if (by === "type") return meter.type;
  return by === "node" ? meter.node || ALL_NODES : meter.name;
}

function labelOf(key: string, by: GroupBy): string {
  if (by === "type") return typeLabel(key);
  return by === "node" ? key : deviceLabel(key);
}

function collect<M extends Meter>(meters: readonly M[], by: GroupBy): Collected<M>[] {
  const groups = new Map<string, Collected<M>>();
  const used = new Map<string, number>();
  for (const meter of meters) {
    const key = keyOf(meter, by);
    let group = groups.get(key);
    if (!group) {
      const position = used.get(meter.type) ?? 0;
      used.set(meter.type, position + 1);
      group = { key, label: labelOf(key, by), type: meter.type, position, siblings: 0, devices: 0, members: [] };
      groups.set(key, group);
    }
    group.devices += meter.devices;
    group.members.push(meter);
  }
  return [...groups.values()].map((group) => ({ ...group, siblings: used.get(group.type) ?? 1 }));
}

type MeterUtilization = Utilization["devices"][number];

export interface Group extends Collected<MeterUtilization> {
  /** Share of the window, 0 … 1. */
  utilization: number;
  /** Share of each step. */
  busy: number[];
}

/** A meter of ten devices counts ten times as much as one of a single device. */
export function groupsOf(meters: readonly MeterUtilization[], by: GroupBy): Group[] {
  return collect(meters, by).map((group) => {
    const { members, devices } = group;
    const mean = (value: (each: MeterUtilization) => number) =>
      members.reduce((sum, each) => sum + each.devices * value(each), 0) / devices;
    return {
      ...group,
      utilization: mean((each) => each.utilization),
      busy: (members[0]?.busy ?? []).map((_, at) => mean((each) => each.busy[at] ?? 0)),
    };
  });
}

export interface Work extends Collected<Meter> {
  /** Seconds of all its devices. */
  busy: number;
  /** Seconds of one of its devices, on average. */
  busy_per_device: number;
  /** Of the work on all devices. */
  share: number;
}

/** The work of each device or type; `busy` is in the order of `meters`. */
export function workOf(meters: readonly Meter[], busy: readonly number[], by: GroupBy): Work[] {
  const measured = meters.map((meter, at) => ({ ...meter, busy: busy[at] ?? 0 }));
  const total = measured.reduce((sum, meter) => sum + meter.busy, 0);
  return collect(measured, by).map((group) => {
    const seconds = group.members.reduce((sum, each) => sum + each.busy, 0);
    return {
      ...group,
      busy: seconds,
      busy_per_device: seconds / group.devices,
      share: total > 0 ? seconds / total : 0,
    };
  });
}
