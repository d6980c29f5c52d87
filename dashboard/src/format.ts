/** Numbers as text: with a fitting unit and few digits. */

const NONE = "–";
const MINUS = "−";

type Value = number | null | undefined;

function missing(value: Value): value is null | undefined {
  return value === null || value === undefined || !Number.isFinite(value);
}

/** Made once: creating a formatter costs a hundred times as much as using it. */
const formatters = Array.from(
  { length: 10 },
  (_, decimals) => new Intl.NumberFormat("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals }),
);

function grouped(value: number, decimals: number): string {
  const text = (formatters[decimals] as Intl.NumberFormat).format(value);
  return text.replace("-", MINUS);
}

/** Three significant digits; the integer part is never rounded. */
export function number(value: Value, digits = 3): string {
  if (missing(value)) return NONE;
  if (value === 0) return "0";
  // Of the rounded value: 0.9996 becomes 1.00, not 1.000.
  const magnitude = Math.floor(Math.log10(Math.abs(Number(value.toPrecision(digits)))));
  const decimals = Math.min(9, Math.max(0, digits - 1 - magnitude));
  return grouped(value, decimals);
}

export function count(value: Value): string {
  return missing(value) ? NONE : grouped(Math.round(value), 0);
}

/** 1.24 M. */
export function shortCount(value: Value): string {
  if (missing(value)) return NONE;
  const size = Math.abs(value);
  if (size < 10_000) return count(value);
  if (size < 999_500) return `${number(value / 1e3)} k`;
  if (size < 999_500_000) return `${number(value / 1e6)} M`;
  return `${number(value / 1e9)} G`;
}

/** On an axis: as short as a round number can be. */
export function tickCount(value: number): string {
  if (Math.abs(value) < 100_000) return count(value);
  return shortCount(value)
    .replace(/(\.\d*?)0+ /, "$1 ")
    .replace(". ", " ");
}

export function seconds(value: Value): string {
  if (missing(value)) return NONE;
  const size = Math.abs(value);
  // Rounding errors of differences.
  if (size < 1e-9) return "0 s";
  if (size < 0.9995e-6) return `${number(value * 1e9)} ns`;
  if (size < 0.9995e-3) return `${number(value * 1e6)} µs`;
  if (size < 0.9995) return `${number(value * 1e3)} ms`;
  if (size < 59.95) return `${number(value)} s`;
  return `${value < 0 ? MINUS : ""}${clockOf(size)}`;
}

function clockOf(size: number): string {
  const rounded = Math.round(size);
  if (rounded < 3600) return `${Math.floor(rounded / 60)} min ${pad(rounded % 60)} s`;
  const minutes = Math.round(size / 60);
  if (minutes < 2880) return `${Math.floor(minutes / 60)} h ${pad(minutes % 60)} min`;
  const hours = Math.round(size / 3600);
  return `${count(Math.floor(hours / 24))} d ${pad(hours % 24)} h`;
}

function pad(value: number): string {
  return String(value).padStart(2, "0");
}

export function joules(value: Value): string {
  if (missing(value)) return NONE;
  const size = Math.abs(value);
  if (size === 0) return "0 J";
  if (size < 0.9995) return `${number(value * 1e3)} mJ`;
  if (size < 999.5) return `${number(value)} J`;
  if (size < 999_500) return `${number(value / 1e3)} kJ`;
  if (size < 999_500_000) return `${number(value / 1e6)} MJ`;
  return `${number(value / 1e9)} GJ`;
}

/** A task costs micro-dollars, a run dollars. */
export function dollars(value: Value): string {
  if (missing(value)) return NONE;
  const size = Math.abs(value);
  if (size === 0) return "$0";
  if (size < 0.01) return `${number(value * 1e6)} µ$`;
  const sign = value < 0 ? MINUS : "";
  return `${sign}$${size < 1 ? number(size) : grouped(size, 2)}`;
}

/** A share of 1 as a percentage. */
export function percent(share: Value, digits?: number): string {
  if (missing(share)) return NONE;
  const value = share * 100;
  return `${grouped(value, digits ?? (Math.abs(value) < 9.995 && value !== 0 ? 2 : 1))} %`;
}

/** A ratio to the Oracle (1.25) as the difference: +25.0 %. */
export function overOracle(ratio: Value): string {
  if (missing(ratio)) return NONE;
  const more = (ratio - 1) * 100;
  if (Math.abs(more) < 0.005) return "±0 %";
  if (more >= 999.5) return `${number(ratio)}×`;
  const size = Math.abs(more);
  return `${more > 0 ? "+" : MINUS}${grouped(size, size < 9.995 ? 2 : 1)} %`;
}

/** A makespan divided by its bound: 1.25×. */
export function overBound(ratio: Value): string {
  return missing(ratio) ? NONE : `${number(ratio)}×`;
}

export function megabytes(value: Value): string {
  if (missing(value)) return NONE;
  return Math.abs(value) < 999.5 ? `${number(value)} MB` : `${number(value / 1000)} GB`;
}

export function perSecond(value: Value): string {
  if (missing(value)) return NONE;
  return `${value < 1000 ? number(value) : shortCount(value)}/s`;
}

export function clock(at: Value): string {
  if (missing(at)) return NONE;
  return new Date(at * 1000).toLocaleTimeString("en-GB");
}

export function dateTime(at: Value): string {
  if (missing(at)) return NONE;
  return new Date(at * 1000).toLocaleString("en-GB", {
    day: "numeric",
    month: "short",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
  });
}

/** Version 0: no model has been published. */
export function modelVersion(version: Value): string {
  return version ? `v${version}` : NONE;
}

/** Scores differ in their third and fourth digit. */
export function score(value: Value): string {
  return number(value, 4);
}

/** Null when one of them is missing or the second is 0. */
export function ratio(value: Value, reference: Value): number | null {
  return missing(value) || missing(reference) || reference === 0 ? null : value / reference;
}
