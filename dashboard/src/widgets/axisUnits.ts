/** One unit for an axis, so that its ticks are round numbers. */
import type { Metric } from "../api/progress";
import { number } from "../format";

export interface AxisUnit {
  divisor: number;
  label: (scaled: number) => string;
}

const SECONDS: [divisor: number, unit: string][] = [
  [86_400, "d"],
  [3600, "h"],
  [60, "min"],
  [1, "s"],
  [1e-3, "ms"],
];

const UNITS: Record<Metric, [divisor: number, unit: string][]> = {
  time: SECONDS,
  turnaround: SECONDS,
  energy: [
    [1e9, "GJ"],
    [1e6, "MJ"],
    [1e3, "kJ"],
    [1, "J"],
    [1e-3, "mJ"],
  ],
  cost: [
    [1, "$"],
    [1e-6, "µ$"],
  ],
};

/** The largest unit that fits into the axis at least twice. */
export function axisUnit(metric: Metric, highest: number): AxisUnit {
  const units = UNITS[metric];
  const [divisor, unit] = units.find(([size]) => highest >= 2 * size) ?? (units.at(-1) as [number, string]);
  return { divisor, label: (scaled) => `${withoutZeros(scaled)} ${unit}` };
}

function withoutZeros(value: number): string {
  return number(value, 6)
    .replace(/(\.\d*?)0+$/, "$1")
    .replace(/\.$/, "");
}
