import { RotateCcw } from "lucide-react";
import { type KeyboardEvent, type ReactNode, useCallback, useMemo, useRef, useState } from "react";
import GridLayout, {
  type Layout as Items,
  type LayoutItem,
  useContainerWidth,
  verticalCompactor,
} from "react-grid-layout";
import { moveElement } from "react-grid-layout/core";
import "react-grid-layout/css/styles.css";
import "react-resizable/css/styles.css";
import { textScale } from "../theme";
import { Button } from "./Button";
import { packed } from "./packing";
import { MoveByKeyContext } from "./Widget";

/** x, y, width, height in cells. */
export type Place = [x: number, y: number, w: number, h: number];

export interface Layout {
  name: string;
  /** The smallest width of the grid, in pixels at the normal text size. */
  from: number;
  columns: number;
  places: Record<string, Place>;
}

export interface GridProps {
  id: string;
  /** Widest first. Below the last one, widgets are stacked and cannot be moved. */
  layouts: Layout[];
  widgets: Record<string, ReactNode>;
  toolbar?: ReactNode;
}

const ROW_PX = 30;
const GAP_PX = 14;
const STACKED_ROWS = 10;

/** Widgets that the user can move and resize; the browser stores the layout. */
export function Grid({ id, layouts, widgets, toolbar }: GridProps) {
  const { width, containerRef, mounted } = useContainerWidth({ measureBeforeMount: true });
  // Rows grow with the text, which is larger on very wide screens.
  const scale = textScale();
  const layout = layouts.find((each) => width >= each.from * scale);
  return (
    <div ref={containerRef}>
      {mounted && layout && (
        <Movable
          key={layout.name}
          id={id}
          layout={layout}
          widgets={widgets}
          toolbar={toolbar}
          width={width}
          scale={scale}
        />
      )}
      {mounted && !layout && <Stacked layouts={layouts} widgets={widgets} toolbar={toolbar} />}
    </div>
  );
}

interface MovableProps {
  id: string;
  layout: Layout;
  widgets: Record<string, ReactNode>;
  toolbar?: ReactNode;
  width: number;
  scale: number;
}

function Movable({ id, layout, widgets, toolbar, width, scale }: MovableProps) {
  const key = `hybrid.layout.${id}.${layout.name}`;
  const initial = useMemo(() => itemsOf(layout), [layout]);
  const [items, setItems] = useState<Items>(() => stored(key, initial));
  // Whether the next layout is that after a drag: then widgets move up into what it left free.
  const dropped = useRef(false);
  const change = useCallback(
    (layoutNow: Items) => {
      const next = dropped.current ? packed(layoutNow, layout.columns) : layoutNow;
      dropped.current = false;
      setItems(next);
      if (equal(next, initial)) localStorage.removeItem(key);
      else localStorage.setItem(key, JSON.stringify(next.map(({ i, x, y, w, h }) => ({ i, x, y, w, h }))));
    },
    [key, initial, layout.columns],
  );
  const moveByKey = useCallback(
    (widget: string, event: KeyboardEvent) => {
      const next = moved(items, widget, event, layout.columns);
      if (!next) return;
      event.preventDefault();
      change(next);
    },
    [items, change, layout.columns],
  );
  return (
    <MoveByKeyContext value={moveByKey}>
      <div className="mb-2 flex flex-wrap items-center justify-end gap-2">
        {toolbar}
        <Button
          variant="ghost"
          className="h-8!"
          data-testid="reset-layout"
          disabled={equal(items, initial)}
          icon={<RotateCcw aria-hidden className="size-3.5" />}
          onClick={() => change(initial)}
        >
          <span className="text-xs">Reset layout</span>
        </Button>
      </div>
      <GridLayout
        width={width}
        layout={items}
        gridConfig={{
          cols: layout.columns,
          rowHeight: ROW_PX * scale,
          margin: [GAP_PX, GAP_PX],
          containerPadding: [0, 0],
        }}
        dragConfig={{ enabled: true, handle: ".widget-handle" }}
        resizeConfig={{ enabled: true, handles: ["se"] }}
        onDragStart={() => {
          dropped.current = false;
        }}
        onDragStop={() => {
          dropped.current = true;
        }}
        onLayoutChange={change}
      >
        {Object.entries(widgets).map(([name, widget]) => (
          <div key={name}>{widget}</div>
        ))}
      </GridLayout>
    </MoveByKeyContext>
  );
}

/** On a phone: one below the other. */
function Stacked({ layouts, widgets, toolbar }: Omit<GridProps, "id">) {
  const places = layouts.at(-1)?.places ?? {};
  return (
    <div className="flex flex-col gap-3">
      <div className="flex flex-wrap gap-2">{toolbar}</div>
      {Object.entries(widgets).map(([name, widget]) => {
        const rows = places[name]?.[3] ?? STACKED_ROWS;
        return (
          <div key={name} style={{ height: rows * (ROW_PX + GAP_PX) - GAP_PX }}>
            {widget}
          </div>
        );
      })}
    </div>
  );
}

function itemsOf(layout: Layout): Items {
  return Object.entries(layout.places).map(([i, [x, y, w, h]]) => ({ i, x, y, w, h, minW: 2, minH: 5 }));
}

/** The stored layout; a widget that is new gets its initial place. */
function stored(key: string, initial: Items): Items {
  try {
    const saved = JSON.parse(localStorage.getItem(key) ?? "[]") as LayoutItem[];
    const known = new Map(saved.map((item) => [item.i, item]));
    return initial.map((item) => ({ ...item, ...known.get(item.i) }));
  } catch {
    return initial;
  }
}

function equal(left: Items, right: Items): boolean {
  const byName = new Map(right.map((item) => [item.i, item]));
  return left.every((item) => {
    const other = byName.get(item.i);
    return other && item.x === other.x && item.y === other.y && item.w === other.w && item.h === other.h;
  });
}

const STEPS: Record<string, [number, number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

/** The layout after an arrow key on the handle of a widget; null for any other key. */
function moved(items: Items, widget: string, event: KeyboardEvent, columns: number): Items | null {
  const step = STEPS[event.key];
  const copy = items.map((item) => ({ ...item }));
  const item = copy.find((each) => each.i === widget);
  if (!step || !item) return null;
  const [dx, dy] = step;
  if (event.shiftKey) {
    item.w = Math.max(item.minW ?? 1, Math.min(columns - item.x, item.w + dx));
    item.h = Math.max(item.minH ?? 1, item.h + dy);
    return verticalCompactor.compact(copy, columns);
  }
  const x = Math.max(0, Math.min(columns - item.w, item.x + dx));
  // A step down has to pass the widget below, or compaction would undo it.
  const below = copy.filter(
    (each) => each.y >= item.y + item.h && each.x < item.x + item.w && each.x + each.w > item.x,
  );
  const y =
    dy > 0 ? Math.min(...below.map((each) => each.y + each.h), item.y + 100) - item.h + 1 : Math.max(0, item.y + dy);
  return verticalCompactor.compact(moveElement(copy, item, x, y, true, false, "vertical", columns), columns);
}
