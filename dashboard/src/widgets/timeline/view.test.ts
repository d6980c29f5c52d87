import { describe, expect, it } from "vitest";
import {
  beside,
  clamped,
  inOtherRow,
  momentOf,
  panned,
  partAt,
  pixelOf,
  showing,
  sizeScale,
  tickLabel,
  ticks,
  zoomed,
} from "./view";

const VIEW = { start: 40, end: 60 };

describe("a stretch of time", () => {
  it("stays within the run", () => {
    expect(clamped({ start: -5, end: 15 }, 100)).toEqual({ start: 0, end: 20 });
    expect(clamped({ start: 95, end: 115 }, 100)).toEqual({ start: 80, end: 100 });
    expect(clamped({ start: 10, end: 400 }, 100)).toEqual({ start: 0, end: 100 });
  });

  it("is zoomed around a moment, which keeps its place", () => {
    expect(zoomed(VIEW, 0.5, 45, 100)).toEqual({ start: 42.5, end: 52.5 });
    expect(zoomed(VIEW, 2, 50, 100)).toEqual({ start: 30, end: 70 });
    expect(zoomed(VIEW, 100, 50, 100)).toEqual({ start: 0, end: 100 });
  });

  it("is moved by a share of its length", () => {
    expect(panned(VIEW, 0.5, 100)).toEqual({ start: 50, end: 70 });
    expect(panned(VIEW, -9, 100)).toEqual({ start: 0, end: 20 });
  });

  it("is moved to a moment only if that is not on the screen", () => {
    expect(showing(VIEW, 59, 100)).toBe(VIEW);
    expect(showing(VIEW, 70, 100)).toEqual({ start: 60, end: 80 });
  });

  it("has a pixel for each moment", () => {
    expect(pixelOf(VIEW, 45, 400)).toBe(100);
    expect(momentOf(VIEW, 100, 400)).toBe(45);
  });

  it("has ticks at round moments", () => {
    expect(ticks(VIEW, 5)).toEqual([40, 45, 50, 55, 60]);
    expect(ticks({ start: 0.11, end: 0.42 }, 4)).toEqual([0.2, 0.3, 0.4]);
    expect(tickLabel(0.2, { start: 0.11, end: 0.42 })).toBe("0.2 s");
    expect(tickLabel(12_000, { start: 10_000, end: 20_000 })).toBe("12,000 s");
  });
});

/** Row 0: 0 to 4 and 6 to 7; row 2: 5.5 to 9. */
const PARTS = {
  row: [0, 2, 0],
  begin: [0, 5.5, 6],
  end: [4, 9, 7],
  task_id: [1, 2, 3],
  decision: [0, 1, 0],
  size: [1, 1, 1],
  failed: [false, false, false],
};

describe("the bar at a place", () => {
  it("is the one there, or the nearest within a few pixels", () => {
    expect(partAt(PARTS, 0, 3, 0)).toBe(0);
    expect(partAt(PARTS, 0, 5.5, 1)).toBe(2);
    expect(partAt(PARTS, 0, 5, 0.5)).toBeNull();
    expect(partAt(PARTS, 1, 3, 100)).toBeNull();
  });

  it("has neighbours on its device and on others", () => {
    expect(beside(PARTS, 0, 1)).toBe(2);
    expect(beside(PARTS, 2, 1)).toBe(2);
    expect(inOtherRow(PARTS, 2, 1, 3)).toBe(1);
    expect(inOtherRow(PARTS, 1, -1, 3)).toBe(2);
    expect(inOtherRow(PARTS, 0, -1, 3)).toBe(0);
  });
});

describe("the scale of sizes", () => {
  it("is logarithmic", () => {
    const scale = sizeScale([10, 1000, null]);
    expect([10, 100, 1000].map(scale)).toEqual([0, 0.5, 1]);
    expect(scale(null)).toBe(0.5);
  });
});
