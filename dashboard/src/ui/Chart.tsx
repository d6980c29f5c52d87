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
  /** What the picture says, for those who do not see it. */
  label: string;
  onPick?: (picked: { name: string; seriesName: string; data: unknown }) => void;
  className?: string;
}

const FONT = '"Geist Variable", system-ui, sans-serif';

/** One ECharts on a canvas: made once, fed with options, resized, disposed of. */
export function Chart({ option, label, onPick, className = "" }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const chart = useRef<echarts.ECharts | null>(null);
  // What is out of sight is drawn when it comes into sight.
  const visible = useRef(true);
  const waiting = useRef<(() => void) | null>(null);
  const pick = useRef(onPick);
  pick.current = onPick;
  const palette = usePalette();

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const made = echarts.init(element, null, { renderer: "canvas" });
    chart.current = made;
    made.on("click", (event) => {
      pick.current?.({ name: event.name, seriesName: event.seriesName ?? "", data: event.data });
    });
    const observer = new ResizeObserver(() => {
      if (element.clientWidth > 0 && element.clientHeight > 0) made.resize();
    });
    observer.observe(element);
    const sight = new IntersectionObserver(([entry]) => {
      visible.current = entry?.isIntersecting ?? true;
      if (!visible.current) return;
      waiting.current?.();
      waiting.current = null;
    });
    sight.observe(element);
    return () => {
      observer.disconnect();
      sight.disconnect();
      made.dispose();
      chart.current = null;
    };
  }, []);

  useEffect(() => {
    const draw = () => {
      // Series that are gone must go; the rest is merged.
      chart.current?.setOption({ ...frame(palette), ...option }, { replaceMerge: ["series"], lazyUpdate: true });
    };
    if (visible.current) draw();
    waiting.current = visible.current ? null : draw;
  }, [option, palette]);

  return <div ref={box} role="img" aria-label={label} className={`h-full min-h-24 w-full ${className}`} />;
}

function frame(palette: Palette): ChartOption {
  return {
    // A frame of animation draws a whole canvas, texts and all: twice a second that is a busy core.
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

/** The look that all axes share. */
export function axis(palette: Palette) {
  return {
    axisLine: { show: false },
    axisTick: { show: false },
    axisLabel: { color: palette.muted, fontSize: palette.small, hideOverlap: true },
    splitLine: { lineStyle: { color: palette.line } },
    nameTextStyle: { color: palette.faint, fontSize: palette.small },
  };
}

/** Text from names that people chose goes through this before it becomes a tooltip's HTML. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);
}
