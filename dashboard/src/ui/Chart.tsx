import { BarChart, HeatmapChart, LineChart, RadarChart, ScatterChart } from "echarts/charts";
import {
  GridComponent,
  LegendComponent,
  MarkLineComponent,
  RadarComponent,
  TooltipComponent,
  VisualMapComponent,
} from "echarts/components";
import * as echarts from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";
import type { EChartsOption } from "echarts/types/dist/shared";
import { useEffect, useRef } from "react";
import { type Palette, usePalette } from "../theme";
import { registerChart } from "./exporting";

echarts.use([
  BarChart,
  HeatmapChart,
  LineChart,
  RadarChart,
  ScatterChart,
  GridComponent,
  LegendComponent,
  MarkLineComponent,
  RadarComponent,
  TooltipComponent,
  VisualMapComponent,
  CanvasRenderer,
]);

export type ChartOption = EChartsOption;

export interface ChartProps {
  option: ChartOption;
  /** The text for screen readers. */
  label: string;
  onPick?: (picked: { name: string; seriesName: string; data: unknown }) => void;
  className?: string;
}

// Without double quotes: in an exported drawing it is part of an attribute.
const FONT = "'Geist Variable', system-ui, sans-serif";

/** An ECharts instance on a canvas. */
export function Chart({ option, label, onPick, className = "" }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const chart = useRef<echarts.ECharts | null>(null);
  // A chart outside the window is drawn when it is scrolled into view.
  const visible = useRef(true);
  const pendingDraw = useRef<(() => void) | null>(null);
  const pick = useRef(onPick);
  pick.current = onPick;
  const palette = usePalette();

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const instance = echarts.init(element, null, { renderer: "canvas" });
    chart.current = instance;
    instance.on("click", (event) => {
      pick.current?.({ name: event.name, seriesName: event.seriesName ?? "", data: event.data });
    });
    const resizeObserver = new ResizeObserver(() => {
      if (element.clientWidth > 0 && element.clientHeight > 0) instance.resize();
    });
    resizeObserver.observe(element);
    const visibilityObserver = new IntersectionObserver(([entry]) => {
      visible.current = entry?.isIntersecting ?? true;
      if (!visible.current) return;
      pendingDraw.current?.();
      pendingDraw.current = null;
    });
    visibilityObserver.observe(element);
    return () => {
      resizeObserver.disconnect();
      visibilityObserver.disconnect();
      instance.dispose();
      chart.current = null;
    };
  }, []);

  useEffect(() => {
    const draw = () => {
      // Series that no longer exist are removed; the rest is merged.
      const complete = { ...defaults(palette), ...option };
      chart.current?.setOption(complete, { replaceMerge: ["series"], lazyUpdate: true });
      if (box.current && chart.current) registerChart(box.current, chart.current, complete);
    };
    if (visible.current) draw();
    pendingDraw.current = visible.current ? null : draw;
  }, [option, palette]);

  return <div ref={box} data-chart role="img" aria-label={label} className={`h-full min-h-24 w-full ${className}`} />;
}

function defaults(palette: Palette): ChartOption {
  return {
    // Each frame of an animation draws the whole canvas: at two updates a second that would fill a core.
    animation: false,
    textStyle: { fontFamily: FONT, color: palette.muted },
    tooltip: tooltip(palette),
  };
}

export function tooltip(palette: Palette) {
  return {
    backgroundColor: palette.surface,
    borderColor: palette.line,
    textStyle: { color: palette.ink, fontSize: palette.small * 1.1, fontFamily: FONT },
    padding: [8, 10],
    confine: true,
    transitionDuration: 0,
  };
}

/** The style of all axes. */
export const TOOLTIP_ROW = "display:flex;gap:16px;justify-content:space-between";

export function axis(palette: Palette) {
  return {
    axisLine: { show: false },
    axisTick: { show: false },
    axisLabel: { color: palette.muted, fontSize: palette.small, hideOverlap: true },
    splitLine: { lineStyle: { color: palette.line } },
    nameTextStyle: { color: palette.faint, fontSize: palette.small },
  };
}

/** For names chosen by users, before they become part of a tooltip's HTML. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);
}
