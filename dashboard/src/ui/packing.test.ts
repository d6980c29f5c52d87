import { describe, expect, it } from "vitest";
import { packed } from "./packing";

const item = (i: string, x: number, y: number, w: number, h: number) => ({ i, x, y, w, h });

describe("packed widgets", () => {
  it("fill the hole that a moved widget leaves", () => {
    // b was dragged from the right of a to the bottom; c fits beside a.
    const moved = [item("a", 0, 0, 6, 4), item("b", 0, 8, 6, 4), item("c", 0, 4, 6, 4)];
    expect(packed(moved, 12)).toEqual([item("a", 0, 0, 6, 4), item("b", 0, 4, 6, 4), item("c", 6, 0, 6, 4)]);
  });

  it("stay where they are when there is no hole", () => {
    const full = [item("a", 0, 0, 8, 4), item("b", 8, 0, 4, 8), item("c", 0, 4, 8, 4)];
    expect(packed(full, 12)).toEqual(full);
  });

  it("never overlap", () => {
    const piled = [item("a", 0, 0, 5, 3), item("b", 2, 0, 5, 4), item("c", 4, 1, 5, 5)];
    expect(packed(piled, 12)).toEqual([item("a", 0, 0, 5, 3), item("b", 5, 0, 5, 4), item("c", 0, 3, 5, 5)]);
  });
});
