/** One unit for a whole axis, so that its steps are round numbers of it. */
import { number } from "../format";

export type Quantity = "time" | "energy" | "cost";

export interface Scale {
  divisor: number;
  label: (scaled: number) => string;
}

const UNITS: Record<Quantity, [divisor: number, unit: string][]> = {
  time: [[86_400, "d"], [3600, "h"], [60, "min"], [1, "s"], [1e-3, "ms"]],
  energy: [[1e9, "GJ"], [1e6, "MJ"], [1e3, "kJ"], [1, "J"], [1e-3, "mJ"]],
  cost: [[1, "$"], [1e-6, "µ$"]],
};

/** The largest unit of which the axis holds at least two. */
export function scaleOf(quantity: Quantity, highest: number): Scale {
  const units = UNITS[quantity];
  const [divisor, unit] = units.find(([size]) => highest >= 2 * size) ?? (units.at(-1) as [number, string]);
  return { divisor, label: (scaled) => `${plain(scaled)} ${unit}` };
}

/** A round number without the zeros that fixed digits would add. */
function plain(value: number): string {
  return number(value, 6).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
}
