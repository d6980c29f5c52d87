import { RotateCcw } from "lucide-react";
import { type KeyboardEvent, type ReactNode, useCallback, useMemo, useState } from "react";
import GridLayout, { type Layout, type LayoutItem, useContainerWidth, verticalCompactor } from "react-grid-layout";
import { moveElement } from "react-grid-layout/core";
import "react-grid-layout/css/styles.css";
import "react-resizable/css/styles.css";
import { textScale } from "../theme";
import { Button } from "./Button";
import { PlacementContext } from "./Widget";

/** x, y, width, height in cells. */
export type Place = [x: number, y: number, w: number, h: number];

export interface Arrangement {
  name: string;
  /** Used from this width on, in pixels at the normal text size. */
  from: number;
  columns: number;
  places: Record<string, Place>;
}

export interface GridProps {
  id: string;
  /** Widest first. Narrower than the last one, widgets are stacked and stay put. */
  arrangements: Arrangement[];
  widgets: Record<string, ReactNode>;
  toolbar?: ReactNode;
}

const ROW_PX = 30;
const GAP_PX = 14;
const STACKED_ROWS = 10;

/** Widgets that people may move and resize; where they put them is kept in their browser. */
export function Grid({ id, arrangements, widgets, toolbar }: GridProps) {
  const { width, containerRef, mounted } = useContainerWidth({ measureBeforeMount: true });
  // Rows follow the text size, which is larger on a wall.
  const scale = textScale();
  const arrangement = arrangements.find((each) => width >= each.from * scale);
  return (
    <div ref={containerRef}>
      {mounted && arrangement && (
        <Arranged key={arrangement.name} id={id} arrangement={arrangement} widgets={widgets} toolbar={toolbar} width={width} scale={scale} />
      )}
      {mounted && !arrangement && <Stacked arrangements={arrangements} widgets={widgets} toolbar={toolbar} />}
    </div>
  );
}

interface ArrangedProps {
  id: string;
  arrangement: Arrangement;
  widgets: Record<string, ReactNode>;
  toolbar?: ReactNode;
  width: number;
  scale: number;
}

function Arranged({ id, arrangement, widgets, toolbar, width, scale }: ArrangedProps) {
  const key = `hybrid.layout.${id}.${arrangement.name}`;
  const standard = useMemo(() => standardLayout(arrangement), [arrangement]);
  const [layout, setLayout] = useState<Layout>(() => kept(key, standard));
  const change = useCallback(
    (next: Layout) => {
      setLayout(next);
      if (same(next, standard)) localStorage.removeItem(key);
      else localStorage.setItem(key, JSON.stringify(next.map(({ i, x, y, w, h }) => ({ i, x, y, w, h }))));
    },
    [key, standard],
  );
  const placement = useMemo(
    () => ({
      onHandleKey: (widget: string, event: KeyboardEvent) => {
        const next = moved(layout, widget, event, arrangement.columns);
        if (!next) return;
        event.preventDefault();
        change(next);
      },
    }),
    [layout, change, arrangement.columns],
  );
  return (
    <PlacementContext value={placement}>
      <div className="mb-2 flex flex-wrap items-center justify-end gap-2">
        {toolbar}
        <Button
          look="ghost"
          className="h-8!"
          data-testid="reset-layout"
          disabled={same(layout, standard)}
          icon={<RotateCcw aria-hidden className="size-3.5" />}
          onClick={() => change(standard)}
        >
          <span className="text-xs">Reset layout</span>
        </Button>
      </div>
      <GridLayout
        width={width}
        layout={layout}
        gridConfig={{ cols: arrangement.columns, rowHeight: ROW_PX * scale, margin: [GAP_PX, GAP_PX], containerPadding: [0, 0] }}
        dragConfig={{ enabled: true, handle: ".widget-handle" }}
        resizeConfig={{ enabled: true, handles: ["se"] }}
        onLayoutChange={change}
      >
        {Object.entries(widgets).map(([name, widget]) => (
          <div key={name}>{widget}</div>
        ))}
      </GridLayout>
    </PlacementContext>
  );
}

/** On a phone: one below the other, in reading order, each as high as it is made for. */
function Stacked({ arrangements, widgets, toolbar }: Omit<GridProps, "id">) {
  const places = arrangements.at(-1)?.places ?? {};
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

function standardLayout(arrangement: Arrangement): Layout {
  return Object.entries(arrangement.places).map(([i, [x, y, w, h]]) => ({ i, x, y, w, h, minW: 2, minH: 5 }));
}

/** What was kept, for the widgets that still exist; new ones get their standard place. */
function kept(key: string, standard: Layout): Layout {
  try {
    const saved = JSON.parse(localStorage.getItem(key) ?? "[]") as LayoutItem[];
    const known = new Map(saved.map((item) => [item.i, item]));
    return standard.map((item) => ({ ...item, ...known.get(item.i) }));
  } catch {
    return standard;
  }
}

function same(left: Layout, right: Layout): boolean {
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

/** The layout after an arrow key on a widget's handle; null when the key means nothing. */
function moved(layout: Layout, widget: string, event: KeyboardEvent, columns: number): Layout | null {
  const step = STEPS[event.key];
  const copy = layout.map((item) => ({ ...item }));
  const item = copy.find((each) => each.i === widget);
  if (!step || !item) return null;
  const [dx, dy] = step;
  if (event.shiftKey) {
    item.w = Math.max(item.minW ?? 1, Math.min(columns - item.x, item.w + dx));
    item.h = Math.max(item.minH ?? 1, item.h + dy);
    return verticalCompactor.compact(copy, columns);
  }
  const x = Math.max(0, Math.min(columns - item.w, item.x + dx));
  // A step down has to pass the neighbour below, or compaction would pull it straight back.
  const below = copy.filter((each) => each.y >= item.y + item.h && each.x < item.x + item.w && each.x + each.w > item.x);
  const y = dy > 0 ? Math.min(...below.map((each) => each.y + each.h), item.y + 100) - item.h + 1 : Math.max(0, item.y + dy);
  return verticalCompactor.compact(moveElement(copy, item, x, y, true, false, "vertical", columns), columns);
}
