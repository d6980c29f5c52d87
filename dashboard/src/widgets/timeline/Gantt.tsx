import { type KeyboardEvent, type PointerEvent, useEffect, useMemo, useRef, useState } from "react";
import type { Timeline } from "../../api/types";
import { deviceLabel } from "../../devices";
import { usePalette } from "../../theme";
import { openView } from "../../url";
import { AXIS, type ColourBy, paint } from "./paint";
import { beside, inOtherRow, momentOf, panned, partAt, showing, type View, zoomed } from "./view";

/** A part of a task, found again when newer data arrives. */
export interface Mark {
  task: number;
  row: number;
}

export interface GanttProps {
  timeline: Timeline;
  view: View;
  /** The end of the run. */
  last: number;
  colourBy: ColourBy;
  mark: Mark | null;
  onMark: (mark: Mark | null) => void;
  onHover: (mark: Mark | null) => void;
  hovered: Mark | null;
  onView: (view: View) => void;
}

const [LOWEST_ROW, HIGHEST_ROW] = [16, 40];
const NEAR = 4; // pixels

const HELP =
  "Arrow keys select a task, Enter opens it. Shift with the arrow keys moves, plus and minus zoom. " +
  "With the mouse: drag to move, hold Control and turn the wheel to zoom.";

/** The bars of all devices. */
export function Gantt(props: GanttProps) {
  const { timeline, view, last, colourBy, mark, hovered, onMark, onHover, onView } = props;
  const palette = usePalette();
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const [width, available] = useSize(box);
  const rows = timeline.devices.length;
  const rowHeight = Math.min(HIGHEST_ROW, Math.max(LOWEST_ROW, Math.floor((available - AXIS - 6) / Math.max(rows, 1))));
  const height = rows * rowHeight + AXIS;
  const marked = indexOf(timeline, hovered ?? mark);
  useEffect(() => {
    const scene = { timeline, view, rowHeight, colourBy, marked, palette };
    if (canvas.current && width > 0) paint(canvas.current, width, height, scene);
  }, [timeline, view, rowHeight, colourBy, marked, palette, width, height]);
  const pointer = usePointer({ ...props, width, rowHeight });
  useWheelZoom(canvas, view, last, onView);

  const select = (part: number) => {
    const { parts } = timeline;
    if (!parts || part < 0) return;
    onMark({ task: parts.task_id[part] as number, row: parts.row[part] as number });
    const [begin, end] = [parts.begin[part], parts.end[part]] as [number, number];
    if (end <= view.start || begin >= view.end) onView(showing(view, begin, last));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const middle = (view.start + view.end) / 2;
    const parts = timeline.parts;
    const current = indexOf(timeline, mark);
    const forward = event.key === "ArrowRight" || event.key === "ArrowDown";
    const step = forward ? 1 : -1;
    if (event.key === "+" || event.key === "=") onView(zoomed(view, 0.5, middle, last));
    else if (event.key === "-") onView(zoomed(view, 2, middle, last));
    else if (event.key === "Enter" && mark) openView("task", { task: mark.task });
    else if (event.key === "Escape") onMark(null);
    else if (!event.key.startsWith("Arrow")) return;
    else if (event.shiftKey) onView(panned(view, 0.25 * step, last));
    else if (parts?.row.length) {
      if (current === null) select(0);
      else if (event.key === "ArrowLeft" || event.key === "ArrowRight") select(beside(parts, current, step));
      else select(inOtherRow(parts, current, step, rows));
    }
    event.preventDefault();
  };

  return (
    <div className="flex min-h-0 flex-1 overflow-y-auto rounded-lg" ref={box}>
      <ul className="w-20 shrink-0 sm:w-28" aria-label="Devices">
        {timeline.devices.map((device) => (
          <li
            key={device.name}
            className="flex items-center truncate pr-2 text-xs text-muted"
            style={{ height: rowHeight }}
            title={deviceLabel(device.name)}
          >
            <span className="truncate">{deviceLabel(device.name)}</span>
          </li>
        ))}
      </ul>
      <div
        role="application"
        aria-label={`Timeline of ${rows} devices. ${HELP}`}
        data-testid="timeline-canvas"
        tabIndex={0}
        className="min-w-0 flex-1 cursor-grab touch-pan-y rounded -outline-offset-2! active:cursor-grabbing"
        style={{ height }}
        onKeyDown={onKeyDown}
        onFocus={(event) => mark === null && event.target.matches(":focus-visible") && select(0)}
        onPointerLeave={() => onHover(null)}
        {...pointer}
      >
        <canvas ref={canvas} aria-hidden className="block h-full w-full" />
      </div>
    </div>
  );
}

export function indexOf(timeline: Timeline, mark: Mark | null): number | null {
  if (!mark || !timeline.parts) return null;
  const { task_id, row } = timeline.parts;
  const at = task_id.findIndex((task, part) => task === mark.task && row[part] === mark.row);
  return at < 0 ? null : at;
}

/** The width of the canvas, and the height that there is. */
function useSize(box: React.RefObject<HTMLDivElement | null>): [number, number] {
  const [size, setSize] = useState<[number, number]>([0, 0]);
  useEffect(() => {
    const element = box.current;
    const drawn = element?.lastElementChild;
    if (!element || !drawn) return;
    const observer = new ResizeObserver(() => setSize([drawn.clientWidth, element.clientHeight]));
    observer.observe(element);
    observer.observe(drawn);
    return () => observer.disconnect();
  }, [box]);
  return size;
}

/** Dragging moves; a click selects; a double click opens the task. */
function usePointer({ timeline, view, last, onMark, onHover, onView, width, rowHeight }: GanttProps & Size) {
  const drag = useRef<{ x: number; view: View; moved: boolean } | null>(null);
  return useMemo(() => {
    const under = (event: { clientX: number; clientY: number; currentTarget: Element }): Mark | null => {
      const { left, top } = event.currentTarget.getBoundingClientRect();
      const row = Math.floor((event.clientY - top) / rowHeight);
      const near = momentOf(view, NEAR, width) - view.start;
      const moment = momentOf(view, event.clientX - left, width);
      const part = timeline.parts && partAt(timeline.parts, row, moment, near);
      return part === null ? null : { task: timeline.parts?.task_id[part] as number, row };
    };
    return {
      onPointerDown: (event: PointerEvent<HTMLDivElement>) => {
        drag.current = { x: event.clientX, view, moved: false };
        event.currentTarget.setPointerCapture(event.pointerId);
      },
      onPointerMove: (event: PointerEvent<HTMLDivElement>) => {
        const from = drag.current;
        if (!from) return onHover(under(event));
        const by = event.clientX - from.x;
        if (Math.abs(by) > NEAR) from.moved = true;
        if (from.moved) onView(panned(from.view, -by / Math.max(width, 1), last));
      },
      onPointerUp: (event: PointerEvent<HTMLDivElement>) => {
        if (drag.current && !drag.current.moved) onMark(under(event));
        drag.current = null;
      },
      onPointerCancel: () => {
        drag.current = null;
      },
      onDoubleClick: (event: React.MouseEvent<HTMLDivElement>) => {
        const found = under(event);
        if (found) openView("task", { task: found.task });
      },
    };
  }, [timeline, view, last, onMark, onHover, onView, width, rowHeight]);
}

interface Size {
  width: number;
  rowHeight: number;
}

/** Without Control the wheel scrolls the page. React's own listener could not prevent the browser's zoom. */
function useWheelZoom(
  canvas: React.RefObject<HTMLCanvasElement | null>,
  view: View,
  last: number,
  onView: (view: View) => void,
) {
  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const zoom = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const { left, width } = element.getBoundingClientRect();
      onView(zoomed(view, 1.0015 ** event.deltaY, momentOf(view, event.clientX - left, width), last));
    };
    element.addEventListener("wheel", zoom, { passive: false });
    return () => element.removeEventListener("wheel", zoom);
  }, [canvas, view, last, onView]);
}
