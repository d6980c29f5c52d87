/** Labels and colours of devices and their types, the same in every chart. */
import type { DeviceType, RunSpec } from "./api/types";
import type { ThemeName } from "./schedulers";

type Cluster = RunSpec["cluster"];

/** Short names such as `gpu` and `v100` are written in capitals; others as they are. */
export function typeLabel(type: string): string {
  return /^[a-z]{1,3}(\d+[a-z]*)?$/.test(type) ? type.toUpperCase() : type;
}

/** `gpu_0` is GPU 0; `rack-1/v100_0` is rack-1 V100 0; a meter of several devices has no number. */
export function deviceLabel(name: string): string {
  const [, node, type = name, number] = /^(?:(.+)\/)?(.+?)(?:_(\d+))?$/.exec(name) ?? [];
  return [node, typeLabel(type), number].filter(Boolean).join(" ");
}

/** The devices that worked on a task. */
export function devicesLabel(row: { device_name: string | null; cpu_name: string | null }): string {
  return [row.device_name, row.cpu_name].flatMap((name) => (name ? [deviceLabel(name)] : [])).join(" + ") || "–";
}

/** The rule of the gateway for a type that is not described: a CPU if its name begins with cpu. */
export function isAccelerator(type: string, types: readonly DeviceType[]): boolean {
  return types.find((each) => each.name === type)?.accelerator ?? !type.toLowerCase().startsWith("cpu");
}

/** After the first of each kind, whose colours are those of the style sheet. */
const SHADES: Record<ThemeName, { accelerator: string[]; cpu: string[] }> = {
  dark: {
    accelerator: ["#9458e9", "#9dfbfa", "#466699", "#54d3f5", "#2b9098"],
    cpu: ["#fadc7d", "#c03809", "#ec5c50"],
  },
  light: {
    accelerator: ["#4a2e61", "#48c9eb", "#a184be", "#362ebc", "#74588e"],
    cpu: ["#a03313", "#eba38f", "#6f1915"],
  },
};

/**
 * The colour of each type: cold ones for accelerators, warm ones for CPUs, which also differ in lightness
 * for people who do not see the hue. They repeat after six accelerators and four CPUs.
 */
export function typeColours(
  names: readonly string[],
  types: readonly DeviceType[],
  palette: { theme: ThemeName; gpu: string; cpu: string },
): Record<string, string> {
  const shades = SHADES[palette.theme];
  const families = {
    accelerator: { colours: [palette.gpu, ...shades.accelerator], used: 0 },
    cpu: { colours: [palette.cpu, ...shades.cpu], used: 0 },
  };
  const colours = names.map((name): [string, string] => {
    const family = families[isAccelerator(name, types) ? "accelerator" : "cpu"];
    const colour = family.colours[family.used % family.colours.length] as string;
    family.used += 1;
    return [name, colour];
  });
  return Object.fromEntries(colours);
}

/** The same colour with less strength for each further device of a type. */
export function deviceShade(colour: string, position: number): string {
  const parts = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  return `rgba(${parts.join(", ")}, ${(1 - (position % 4) * 0.2).toFixed(2)})`;
}

function nodeCounts(cluster: Cluster): Map<string, number> {
  if (cluster.nodes.length) return new Map(cluster.nodes.map(({ name, count }) => [name, count]));
  return new Map(cluster.devices.length ? cluster.devices.map(({ node }) => [node, 1]) : [["node", 1]]);
}

/** The names of all nodes, in the order of their numbers. */
export function nodeNames(cluster: Cluster): string[] {
  return [...nodeCounts(cluster)].flatMap(([name, count]) =>
    count === 1 ? [name] : Array.from({ length: count }, (_, at) => `${name}-${at}`),
  );
}

/** The number of devices of each type in the whole cluster, in the order of the spec. */
export function deviceCounts(cluster: Cluster): Map<string, number> {
  const nodes = nodeCounts(cluster);
  const counts = new Map<string, number>();
  for (const { type, count, node } of cluster.devices) {
    counts.set(type, (counts.get(type) ?? 0) + count * (nodes.get(node) ?? 1));
  }
  return counts;
}
