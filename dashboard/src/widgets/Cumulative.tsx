import { useMemo } from "react";
import { path } from "../api/client";
import { usePolled } from "../api/polling";
import { type Metric, totalAt, totals } from "../api/progress";
import type { Progress, StoredModel, Track } from "../api/types";
import { count, dollars, joules, seconds, tickCount } from "../format";
import { useLive, useRun, useSchedulers } from "../live";
import { labelOf, ORACLE } from "../schedulers";
import { type Palette, usePalette } from "../theme";
import {
  axis,
  Chart,
  type ChartOption,
  type Column,
  escapeHtml,
  failedColumn,
  numberColumn,
  SchedulerName,
  Select,
  schedulerColumn,
  Table,
  TOOLTIP_ROW,
  tooltip,
  Widget,
} from "../ui";
import { curvesCsv } from "../ui/exporting";
import { driftMarks, type Mark, markLines, markText, modelMarks } from "../ui/marks";
import { setParameters, useParameter } from "../url";
import { axisUnit } from "./axisUnits";
import type { ArenaWidget } from "./layout";
import { useProgress } from "./selection";

export const cumulative: ArenaWidget = {
  id: "cumulative",
  title: "Cumulative totals",
  caption: "The sum over all tasks so far. Flatter is better.",
  component: Cumulative,
  sizes: { wall: [4, 11], wide: [4, 11], medium: [3, 11] },
};

const EXECUTION_CAPTION =
  "The sum over all tasks so far. Flatter is better; the distance to the Oracle is what could have been saved.";

interface Measure {
  label: string;
  title: string;
  metric: Metric;
  show: (value: number) => string;
  /** Less the Oracle's total after as many tasks. */
  aboveOracle?: boolean;
}

const MEASURES: Record<string, Measure> = {
  total_turnaround: {
    label: "Turnaround",
    title: "Cumulative turnaround",
    metric: "turnaround",
    show: seconds,
  },
  total_time: { label: "Execution", title: "Cumulative execution time", metric: "time", show: seconds },
  lost_time: {
    label: "Above Oracle",
    title: "Cumulative execution time above the Oracle",
    metric: "time",
    show: seconds,
    aboveOracle: true,
  },
  total_energy: { label: "Energy", title: "Cumulative energy", metric: "energy", show: joules },
  total_cost: { label: "Cost", title: "Cumulative cost", metric: "cost", show: dollars },
};

/** `names` limits it to some schedulers. */
export function Cumulative({ names: only }: { names?: string[] }) {
  const selected = useParameter("measure") ?? "";
  const key = MEASURES[selected] ? selected : "total_turnaround";
  const measure = MEASURES[key] as Measure;
  const source = useProgress();
  const all = useSchedulers();
  const palette = usePalette();
  const names = useMemo(() => all.filter((name) => !only || only.includes(name)), [all, only]);
  const curves = useMemo(
    () => (source.data ? curvesOf(source.data, names, measure) : []),
    [source.data, names, measure],
  );
  const marks = useMarks(only);
  const option = useMemo(() => lines(curves, measure, palette, marks), [curves, measure, palette, marks]);
  const none = source.data && !names.some((name) => source.data?.schedulers[name]?.tasks.length);
  return (
    <Widget
      {...cumulative}
      title={measure.title}
      caption={`${measure.metric === "time" ? EXECUTION_CAPTION : cumulative.caption}${markText(marks)}`}
      source={source}
      empty={none ? "No result has been stored yet." : undefined}
      actions={
        <Select
          label="Measure"
          value={key}
          choices={Object.entries(MEASURES).map(([value, { label }]) => ({ value, label }))}
          onChoose={(value) => setParameters({ measure: value })}
        />
      }
      csv={() => curvesCsv(key, curves)}
      table={source.data ? <Totals progress={source.data} names={names} /> : undefined}
    >
      <div className="flex h-full gap-1">
        <div className="min-w-0 flex-1">
          <Chart option={option} label={`${measure.title} of ${names.length} schedulers over their tasks`} />
        </div>
        <Legend curves={curves} show={measure.show} />
      </div>
    </Widget>
  );
}

/** Changes of the workload; on the page of a learner, also its models. */
function useMarks(only: string[] | undefined): Mark[] {
  const run = useRun();
  const spec = useLive((live) => live.spec);
  const learner = only?.find((name) => name !== ORACLE) ?? null;
  const models = usePolled<StoredModel[]>(
    run && learner && path("/api/models", { run, name: learner, limit: 1000 }),
    30_000,
  ).data;
  return useMemo(() => [...driftMarks(spec), ...modelMarks(models ?? [])], [spec, models]);
}

/** [tasks, total] of a scheduler, or of its difference to the Oracle. */
export function pointsOf(track: Track, metric: Metric, oracle?: Track): [number, number][] {
  const atOracle = (tasks: number) =>
    oracle ? (totalAt(oracle, metric, tasks) ?? totals(oracle, metric).at(-1) ?? 0) : 0;
  return totals(track, metric).map((total, at) => {
    const tasks = track.tasks[at] ?? 0;
    return [tasks, total - atOracle(tasks)];
  });
}

interface Curve {
  name: string;
  points: [number, number][];
  last: number;
}

function curvesOf(progress: Progress, names: string[], measure: Measure): Curve[] {
  const oracle = measure.aboveOracle ? progress.schedulers[ORACLE] : undefined;
  return names.flatMap((name) => {
    const series = progress.schedulers[name];
    if (!series?.tasks.length) return [];
    const points = pointsOf(series, measure.metric, oracle);
    return [{ name, points: [[0, 0], ...points], last: points.at(-1)?.[1] ?? 0 }];
  });
}

/** Entries of the legend that have room for their values: more have theirs as tooltips, and in the table. */
const MOST_WITH_VALUES = 9;

/** In the order of the last points. */
function Legend({ curves, show }: { curves: Curve[]; show: (value: number) => string }) {
  const order = [...curves].sort((left, right) => right.last - left.last);
  const dense = curves.length > MOST_WITH_VALUES;
  return (
    <ol className={`legend w-30 text-xs ${dense ? "" : "gap-1.5"}`}>
      {order.map((curve) => (
        <li
          key={curve.name}
          className="num leading-tight"
          data-scheduler={curve.name}
          data-value={curve.last}
          title={show(curve.last)}
        >
          <SchedulerName name={curve.name} />
          <span className={dense ? "sr-only" : "block pl-4 text-[0.6875rem] text-muted"}>{show(curve.last)}</span>
        </li>
      ))}
    </ol>
  );
}

function lines(curves: Curve[], measure: Measure, palette: Palette, marks: Mark[]): ChartOption {
  const unit = axisUnit(measure.metric, Math.max(0, ...curves.map((curve) => curve.last)));
  return {
    grid: { left: 4, right: 14, top: 12, bottom: 4, containLabel: true },
    tooltip: {
      ...tooltip(palette),
      trigger: "axis",
      formatter: (points: unknown) => describe(points as Point[], (value) => measure.show(value * unit.divisor)),
    },
    xAxis: {
      ...axis(palette),
      type: "value",
      // More would not fit beside the legend of a narrow widget: every second one would be left out.
      splitNumber: 3,
      splitLine: { show: false },
      axisLabel: {
        ...axis(palette).axisLabel,
        formatter: tickCount,
      },
      max: "dataMax",
    },
    yAxis: {
      ...axis(palette),
      type: "value",
      min: 0,
      splitNumber: 4,
      axisLabel: { ...axis(palette).axisLabel, formatter: unit.label },
    },
    series: curves.map(({ name, points }, at) => {
      const colour = palette.colour(name);
      return {
        id: name,
        name: labelOf(name),
        type: "line" as const,
        showSymbol: false,
        data: points.map(([task, total]) => [task, total / unit.divisor]),
        color: colour,
        lineStyle: {
          width: name === ORACLE ? 1.5 : 2,
          type: name === ORACLE ? ("dashed" as const) : ("solid" as const),
        },
        emphasis: { disabled: true },
        ...(at === 0 && { markLine: markLines(within(marks, points), palette) }),
      };
    }),
  };
}

/** A mark beyond the end would stretch the axis. */
function within(marks: Mark[], points: [number, number][]): Mark[] {
  const end = points.at(-1)?.[0] ?? 0;
  return marks.filter((mark) => mark.at <= end);
}

interface Point {
  seriesName: string;
  color: string;
  value: [number, number];
}

function describe(points: Point[], show: (value: number) => string): string {
  if (!points.length) return "";
  const sorted = [...points].sort((left, right) => right.value[1] - left.value[1]);
  const rows = sorted.map(
    (point) =>
      `<div style="${TOOLTIP_ROW}"><span style="color:${point.color}">${escapeHtml(point.seriesName)}</span><b>${show(point.value[1])}</b></div>`,
  );
  return `<div>after ${count(points[0]?.value[0])} tasks</div>${rows.join("")}`;
}

interface TotalsRow {
  name: string;
  tasks: number;
  total_time: number;
  total_turnaround: number;
  turnaround_p95: number;
  total_energy: number;
  total_cost: number;
  failed: number;
}

const COLUMNS: Column<TotalsRow>[] = [
  schedulerColumn((row) => row.name),
  numberColumn("tasks", "Tasks"),
  numberColumn("total_turnaround", "Turnaround", seconds, "Execution and waiting"),
  numberColumn("turnaround_p95", "p95 turnaround", seconds, "95 % of the tasks were not slower"),
  numberColumn("total_time", "Execution", seconds),
  numberColumn("total_energy", "Energy", joules),
  numberColumn("total_cost", "Cost", dollars),
  failedColumn(),
];

function Totals({ progress, names }: { progress: Progress; names: string[] }) {
  const rows = names.flatMap((name) => {
    const series = progress.schedulers[name];
    if (!series?.tasks.length) return [];
    const last = series.tasks.length - 1;
    const at = (values: number[]) => values[last] ?? 0;
    return [
      {
        name,
        tasks: at(series.tasks),
        total_time: at(series.total_time),
        total_turnaround: at(series.total_turnaround),
        turnaround_p95: at(series.turnaround_p95),
        total_energy: at(series.total_energy),
        total_cost: at(series.total_cost),
        failed: at(series.failed),
      },
    ];
  });
  return (
    <Table
      caption="Totals so far"
      columns={COLUMNS}
      rows={rows}
      rowKey={(row) => row.name}
      rowAttributes={(row) => ({ "data-scheduler": row.name })}
      sort={{ key: "total_time", descending: false }}
    />
  );
}
