/** Labels and colours of devices and their types, the same in every chart. */
import type { DeviceType, RunSpec } from "./api/types";
import { percent } from "./format";
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

interface Placed {
  gpu_fraction: number | null;
  device_name: string | null;
  cpu_name: string | null;
}

/** Where a task ran: "all of it on CPU 0", "60.0 % on GPU 1, 40.0 % on CPU 0". */
export function placementText({ gpu_fraction, device_name, cpu_name }: Placed): string {
  const share = gpu_fraction ?? 0;
  const [device, cpu] = [device_name, cpu_name].map((name) => (name ? deviceLabel(name) : null));
  if (device && cpu) return `${percent(share)} on ${device}, ${percent(1 - share)} on ${cpu}`;
  if (device || cpu) return `all of it on ${device ?? cpu}`;
  return "it ran nowhere";
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

/** The hues of types beyond the named colours: cold ones and warm ones. */
const HUES = { accelerator: [170, 310], cpu: [330, 420] } as const;

/** A colour that no other of the family has: as far as possible from those before. */
function furtherColour(family: keyof typeof HUES, number: number, theme: ThemeName): string {
  const [from, to] = HUES[family];
  // The golden ratio spreads any number of points over a range.
  const hue = (from + ((number * 0.618034) % 1) * (to - from)) % 360;
  const lightness = (theme === "dark" ? 52 : 28) + ((number * 37) % 30);
  return hexOf(hue / 360, 0.62, lightness / 100);
}

function hexOf(hue: number, saturation: number, lightness: number): string {
  const strength = saturation * Math.min(lightness, 1 - lightness);
  const part = (shift: number) => {
    const at = (shift + hue * 12) % 12;
    const value = lightness - strength * Math.max(-1, Math.min(at - 3, 9 - at, 1));
    return Math.round(value * 255)
      .toString(16)
      .padStart(2, "0");
  };
  return `#${part(0)}${part(8)}${part(4)}`;
}

/**
 * The colour of each type: cold ones for accelerators, warm ones for CPUs, which also differ in lightness
 * for people who do not see the hue. No two types have the same.
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
    const kind = isAccelerator(name, types) ? "accelerator" : "cpu";
    const family = families[kind];
    const colour = family.colours[family.used] ?? furtherColour(kind, family.used, palette.theme);
    family.used += 1;
    return [name, colour];
  });
  return Object.fromEntries(colours);
}

/** The same colour with less strength for each further device of a type; none of its `devices` have the same. */
export function deviceShade(colour: string, position: number, devices = 4): string {
  const parts = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  const step = Math.min(0.2, 0.75 / Math.max(devices - 1, 1));
  return `rgba(${parts.join(", ")}, ${(1 - position * step).toFixed(3)})`;
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
