/** A line chart over the tasks of a run. */
import type { Metric } from "../../api/progress";
import { count, tickCount } from "../../format";
import type { Palette } from "../../theme";
import { axis, type ChartOption, escapeHtml, TOOLTIP_ROW } from "../../ui";
import { type Mark, markLines } from "../../ui/marks";
import { type AxisUnit, axisUnit } from "../../widgets/axisUnits";

export interface Line {
  name: string;
  colour: string;
  points: [tasks: number, value: number][];
  dashed?: boolean;
}

export interface LineChartOptions {
  palette: Palette;
  format: (value: number) => string;
  /** For the axis. */
  tick?: (value: number) => string;
  /** Of the axis, so that its ticks are round numbers: instead of `tick`. */
  unit?: AxisUnit;
  /** A horizontal line to compare with. */
  level?: number;
  /** Vertical lines. */
  marks?: Mark[];
  /** For ratios that spread over several powers of ten. */
  logarithmic?: boolean;
}

interface Hovered {
  seriesName?: string;
  color?: unknown;
  value?: unknown;
}

/** The unit of an axis for these lines. */
export function unitOf(metric: Metric, lines: Line[]): AxisUnit {
  return axisUnit(metric, Math.max(0, ...lines.flatMap(({ points }) => points.map(([, value]) => value))));
}

export function lineChart(all: Line[], options: LineChartOptions): ChartOption {
  const { palette, format, unit, tick = unit?.label ?? format, level, marks = [], logarithmic = false } = options;
  const divisor = unit?.divisor ?? 1;
  const end = Math.max(0, ...all.map((line) => line.points.at(-1)?.[0] ?? 0));
  const drawn = markLines(
    marks.filter((mark) => mark.at <= end),
    palette,
  ).data;
  return {
    grid: { left: 8, right: 18, top: 12, bottom: 54, containLabel: true },
    legend: {
      type: "scroll",
      bottom: 0,
      // The line itself, so that a dashed one can be told from a solid one of the same colour.
      itemWidth: 22,
      itemHeight: 8,
      itemStyle: { opacity: 0 },
      textStyle: { color: palette.muted, fontSize: 11 },
      pageIconColor: palette.muted,
      pageIconInactiveColor: palette.line,
      pageTextStyle: { color: palette.muted },
      inactiveColor: palette.faint,
    },
    tooltip: {
      trigger: "axis",
      axisPointer: { lineStyle: { color: palette.faint } },
      formatter: (hovered: unknown) => describe(hovered as Hovered[], (value) => format(value * divisor)),
    },
    xAxis: {
      ...axis(palette),
      type: "value",
      min: "dataMin",
      max: "dataMax",
      name: "tasks",
      nameLocation: "middle",
      nameGap: 24,
      splitLine: { show: false },
      axisLabel: { ...axis(palette).axisLabel, formatter: tickCount },
    },
    yAxis: {
      ...axis(palette),
      type: logarithmic ? ("log" as const) : ("value" as const),
      ...(level === undefined
        ? {}
        : { min: ({ min }: { min: number }) => axisStart(Math.min(level, min), logarithmic) }),
      axisLabel: { ...axis(palette).axisLabel, formatter: tick },
    },
    series: all.map((line, at) => ({
      type: "line" as const,
      name: line.name,
      data: line.points.map(([tasks, value]) => [tasks, value / divisor]),
      showSymbol: line.points.length < 2,
      lineStyle: { width: 2, type: line.dashed ? ("dashed" as const) : ("solid" as const) },
      itemStyle: { color: line.colour },
      emphasis: { focus: "series" as const },
      ...(at === 0
        ? { markLine: { ...levelLine(level, palette), data: [...levelLine(level, palette).data, ...drawn] } }
        : {}),
    })),
  };
}

function axisStart(least: number, logarithmic: boolean): number {
  return logarithmic ? 10 ** Math.floor(Math.log10(least)) : least;
}

function levelLine(level: number | undefined, palette: Palette) {
  return {
    silent: true,
    symbol: "none",
    lineStyle: { color: palette.faint, type: "dotted" as const, width: 1.5 },
    label: { show: false },
    data: level === undefined ? [] : [{ yAxis: level }],
  };
}

/** The values at the pointer, lowest first. */
function describe(hovered: Hovered[], format: (value: number) => string): string {
  const rows = hovered
    .flatMap((each) => {
      const [tasks, value] = Array.isArray(each.value) ? (each.value as number[]) : [];
      return tasks === undefined || value === undefined ? [] : [{ each, tasks, value }];
    })
    .sort((left, right) => left.value - right.value);
  const first = rows[0];
  if (!first) return "";
  const items = rows.map(
    ({ each, value }) =>
      `<div style="${TOOLTIP_ROW}"><span><span style="color:${String(each.color)}">●</span> ${escapeHtml(each.seriesName ?? "")}</span><b>${format(value)}</b></div>`,
  );
  return `<div style="opacity:.7">after ${count(first.tasks)} tasks</div>${items.join("")}`;
}
