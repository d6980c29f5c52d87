/** The layouts of the Arena view, derived from the sizes of its widgets. */
import type { ComponentType } from "react";
import type { Layout, WidgetHeading } from "../ui";
import type { Place } from "../ui/Grid";

/** Columns and rows of the grid. */
type Size = [width: number, height: number];

export type Sizes = Record<"wall" | "wide" | "medium", Size>;

/** A widget of the Arena view. */
export interface ArenaWidget extends WidgetHeading {
  component: ComponentType;
  sizes: Sizes;
}

const LAYOUTS = [
  { name: "wall", from: 1800, columns: 16 },
  { name: "wide", from: 1120, columns: 12 },
  { name: "medium", from: 640, columns: 6 },
] as const;

export function layoutsOf(widgets: readonly Pick<ArenaWidget, "id" | "sizes">[]): Layout[] {
  return LAYOUTS.map((layout) => ({ ...layout, places: places(widgets, layout) }));
}

/** Each widget, in order, at the highest and then leftmost place where it fits. */
function places(
  widgets: readonly Pick<ArenaWidget, "id" | "sizes">[],
  { name, columns }: (typeof LAYOUTS)[number],
): Record<string, Place> {
  const heights = new Array<number>(columns).fill(0);
  const placed = widgets.map(({ id, sizes }): [string, Place] => {
    const [w, h] = sizes[name];
    const tops = Array.from({ length: columns - w + 1 }, (_, x) => Math.max(...heights.slice(x, x + w)));
    const y = Math.min(...tops);
    const x = tops.indexOf(y);
    heights.fill(y + h, x, x + w);
    return [id, [x, y, w, h]];
  });
  return Object.fromEntries(placed);
}
