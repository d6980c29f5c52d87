/** Draws a timeline on a canvas. */
import type { Timeline } from "../../api/types";
import type { Palette } from "../../theme";
import { type Parts, pixelOf, sizeScale, tickLabel, ticks, type View } from "./view";

export type ColourBy = "decision" | "size";

/** In the order of the numbers in the data. */
export const DECISIONS = ["whole task on an accelerator", "whole task on a CPU", "split between both"] as const;

export const AXIS = 20;

export interface Scene {
  timeline: Timeline;
  view: View;
  rowHeight: number;
  colourBy: ColourBy;
  /** The part under the pointer or with the keyboard's focus; all parts of its task are outlined. */
  marked: number | null;
  palette: Palette;
}

export function decisionColours(palette: Palette): string[] {
  return [palette.gpu, palette.cpu, palette.good];
}

/** Pale for small tasks, strong for large ones. */
export function sizeColour(share: number, palette: Palette): string {
  const [from, to] = palette.theme === "dark" ? ["#31425f", "#ffe08a"] : ["#c8d6ee", "#8a3d00"];
  const channel = (at: number) => {
    const [low, high] = [from, to].map((colour) => parseInt((colour as string).slice(at, at + 2), 16)) as [
      number,
      number,
    ];
    return Math.round(low + (high - low) * share);
  };
  return `rgb(${channel(1)}, ${channel(3)}, ${channel(5)})`;
}

export function paint(canvas: HTMLCanvasElement, width: number, height: number, scene: Scene): void {
  const density = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * density);
  canvas.height = Math.round(height * density);
  const context = canvas.getContext("2d");
  if (!context) return;
  context.scale(density, density);
  paintGrid(context, width, scene);
  const { parts, blocks } = scene.timeline;
  if (parts) paintParts(context, width, parts, scene);
  if (blocks) paintBlocks(context, width, blocks, scene);
  paintNow(context, width, scene);
}

function paintGrid(context: CanvasRenderingContext2D, width: number, { timeline, view, rowHeight, palette }: Scene) {
  const bottom = timeline.devices.length * rowHeight;
  context.font = `${palette.small}px "Geist Variable", system-ui, sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillStyle = palette.line;
  for (let row = 0; row <= timeline.devices.length; row += 1) context.fillRect(0, row * rowHeight, width, 1);
  for (const at of ticks(view, width / 70)) {
    const x = pixelOf(view, at, width);
    context.fillStyle = palette.line;
    context.fillRect(x, 0, 1, bottom + 3);
    const label = tickLabel(at, view);
    const half = context.measureText(label).width / 2;
    context.fillStyle = palette.muted;
    context.fillText(label, Math.min(Math.max(x, half), width - half), bottom + AXIS / 2 + 3);
  }
}

function paintParts(context: CanvasRenderingContext2D, width: number, parts: Parts, scene: Scene) {
  const { view, rowHeight, marked, palette, colourBy } = scene;
  const colours = decisionColours(palette);
  const scale = sizeScale(parts.size);
  const task = marked === null ? null : parts.task_id[marked];
  const outlined: [number, number, number][] = [];
  for (let part = 0; part < parts.row.length; part += 1) {
    const begin = Math.max(pixelOf(view, parts.begin[part] as number, width), -2);
    const end = Math.min(pixelOf(view, parts.end[part] as number, width), width + 2);
    if (end < 0 || begin > width) continue;
    const top = (parts.row[part] as number) * rowHeight + 2;
    // A hair of space tells tasks apart that follow each other.
    const wide = Math.max(end - begin - (end - begin > 3 ? 1 : 0), 1);
    context.fillStyle =
      colourBy === "size"
        ? sizeColour(scale(parts.size[part] ?? null), palette)
        : (colours[parts.decision[part] as number] as string);
    context.fillRect(begin, top, wide, rowHeight - 3);
    if (parts.failed[part]) {
      context.fillStyle = palette.bad;
      context.fillRect(begin, top + rowHeight - 6, wide, 3);
    }
    if (parts.task_id[part] === task) outlined.push([begin, top, wide]);
  }
  context.strokeStyle = palette.ink;
  context.lineWidth = 2;
  for (const [begin, top, wide] of outlined) context.strokeRect(begin - 1, top - 1, wide + 2, rowHeight - 1);
}

/** The height is the share of a step that the device works. */
function paintBlocks(
  context: CanvasRenderingContext2D,
  width: number,
  blocks: NonNullable<Timeline["blocks"]>,
  scene: Scene,
) {
  const { timeline, view, rowHeight, palette, colourBy } = scene;
  const colours = decisionColours(palette);
  const steps = blocks.size[0]?.length ?? 0;
  const step = (timeline.end - timeline.start) / Math.max(steps, 1);
  const scale = sizeScale(blocks.size.flat());
  timeline.devices.forEach((_, row) => {
    const bottom = (row + 1) * rowHeight - 1;
    for (let at = 0; at < steps; at += 1) {
      const begin = pixelOf(view, timeline.start + at * step, width);
      const end = pixelOf(view, timeline.start + (at + 1) * step, width);
      let filled = 0;
      blocks.busy.forEach((devices, decision) => {
        const high = (devices[row]?.[at] ?? 0) * (rowHeight - 3);
        context.fillStyle =
          colourBy === "size"
            ? sizeColour(scale(blocks.size[row]?.[at] ?? null), palette)
            : (colours[decision] as string);
        context.fillRect(begin, bottom - filled - high, end - begin + 0.5, high);
        filled += high;
      });
    }
  });
}

/** The newest arrival: what is right of it is planned. */
function paintNow(context: CanvasRenderingContext2D, width: number, { timeline, view, rowHeight, palette }: Scene) {
  const x = pixelOf(view, timeline.clock, width);
  if (x < 0 || x >= width - 1) return;
  context.fillStyle = palette.accent;
  context.fillRect(x, 0, 1.5, timeline.devices.length * rowHeight);
}
