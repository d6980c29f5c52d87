/** The arithmetic of the timeline: stretches of simulated time, ticks, and the bar at a place. Pure functions. */
import type { Timeline } from "../../api/types";

/** A stretch of simulated time, in seconds. */
export interface View {
  start: number;
  end: number;
}

export type Parts = NonNullable<Timeline["parts"]>;

/** No zoom goes below this. */
const SHORTEST = 1e-4;

export function lengthOf(view: View): number {
  return view.end - view.start;
}

/** The same length within 0 … `last`; all of it if the stretch is longer. */
export function clamped({ start, end }: View, last: number): View {
  const length = Math.min(Math.max(end - start, SHORTEST), Math.max(last, SHORTEST));
  const from = Math.min(Math.max(start, 0), Math.max(last - length, 0));
  return { start: from, end: from + length };
}

/** `factor` 2 shows twice as long a stretch; the moment `at` keeps its place on the screen. */
export function zoomed(view: View, factor: number, at: number, last: number): View {
  const length = Math.min(Math.max(lengthOf(view) * factor, SHORTEST), Math.max(last, SHORTEST));
  const start = at - ((at - view.start) / lengthOf(view)) * length;
  return clamped({ start, end: start + length }, last);
}

/** `share` 0.5 moves to what comes half a screen later. */
export function panned(view: View, share: number, last: number): View {
  const by = share * lengthOf(view);
  return clamped({ start: view.start + by, end: view.end + by }, last);
}

/** Shifted, if necessary, so that a moment is on the screen. */
export function showing(view: View, at: number, last: number): View {
  if (at >= view.start && at <= view.end) return view;
  const start = at - lengthOf(view) / 2;
  return clamped({ start, end: start + lengthOf(view) }, last);
}

export function pixelOf(view: View, at: number, width: number): number {
  return ((at - view.start) / lengthOf(view)) * width;
}

export function momentOf(view: View, pixel: number, width: number): number {
  return view.start + (pixel / Math.max(width, 1)) * lengthOf(view);
}

/** Round moments, at most `most` of them. */
export function ticks(view: View, most: number): number[] {
  const rough = lengthOf(view) / Math.max(most, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((each) => each * power >= rough) ?? 10) * power;
  const first = Math.ceil(view.start / step - 1e-9);
  const count = Math.floor(view.end / step + 1e-9) - first + 1;
  return Array.from({ length: Math.max(count, 0) }, (_, at) => Number(((first + at) * step).toPrecision(12)));
}

/** As many decimals as tell neighbouring ticks apart. */
export function tickLabel(at: number, view: View): string {
  const decimals = Math.min(6, Math.max(0, 1 - Math.floor(Math.log10(lengthOf(view)))));
  return `${Number(at.toFixed(decimals)).toLocaleString("en-US", { maximumFractionDigits: decimals })} s`;
}

/** The part of a row at a moment, or the nearest one within `tolerance` seconds; null: none. */
export function partAt(parts: Parts, row: number, at: number, tolerance: number): number | null {
  let nearest: number | null = null;
  let distance = tolerance;
  for (let part = 0; part < parts.row.length; part += 1) {
    if (parts.row[part] !== row) continue;
    const away = Math.max((parts.begin[part] as number) - at, at - (parts.end[part] as number), 0);
    if (away > distance || (away === distance && nearest !== null)) continue;
    nearest = part;
    distance = away;
  }
  return nearest;
}

/** The next (or previous, with step -1) part of the same row; the part itself at the end. */
export function beside(parts: Parts, part: number, step: 1 | -1): number {
  for (let at = part + step; at >= 0 && at < parts.row.length; at += step) {
    if (parts.row[at] === parts.row[part]) return at;
  }
  return part;
}

/** The part nearest in time in the next row that has one, upwards or downwards. */
export function inOtherRow(parts: Parts, part: number, step: 1 | -1, rows: number): number {
  const row = parts.row[part] as number;
  for (let other = row + step; other >= 0 && other < rows; other += step) {
    const found = partAt(parts, other, parts.begin[part] as number, Number.POSITIVE_INFINITY);
    if (found !== null) return found;
  }
  return part;
}

/** 0 for the smallest and 1 for the largest of them, on a logarithmic scale. */
export function sizeScale(sizes: readonly (number | null)[]): (size: number | null) => number {
  let [low, high] = [Number.POSITIVE_INFINITY, 0];
  for (const size of sizes) {
    if (size === null || size <= 0) continue;
    low = Math.min(low, size);
    high = Math.max(high, size);
  }
  const range = Math.log(high / low);
  return (size) => (size === null || size <= 0 || !(range > 0) ? 0.5 : Math.log(size / low) / range);
}
