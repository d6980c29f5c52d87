import { useMemo } from "react";
import type { Progress, ProgressSeries } from "../api/types";
import { count, dollars, joules, seconds, shortCount } from "../format";
import { useSchedulers } from "../live";
import { labelOf, ORACLE } from "../schedulers";
import { type Palette, usePalette } from "../theme";
import { axis, Chart, type ChartOption, type Column, escapeHtml, SchedulerName, Select, Table, tooltip, Widget } from "../ui";
import { setParameters, useParameter } from "../url";
import { type Quantity, scaleOf } from "./scale";
import { useProgress } from "./subject";

type Total = "total_time" | "total_energy" | "total_cost";

interface View {
  label: string;
  title: string;
  of: Total;
  quantity: Quantity;
  show: (value: number) => string;
  /** Only what was spent beyond the Oracle on the same number of tasks. */
  lost?: boolean;
}

const VIEWS: Record<string, View> = {
  total_time: { label: "Time", title: "Cumulative time", of: "total_time", quantity: "time", show: seconds },
  lost_time: { label: "Lost time", title: "Time lost to the Oracle", of: "total_time", quantity: "time", show: seconds, lost: true },
  total_energy: { label: "Energy", title: "Cumulative energy", of: "total_energy", quantity: "energy", show: joules },
  total_cost: { label: "Cost", title: "Cumulative cost", of: "total_cost", quantity: "cost", show: dollars },
};

/** `names` limits it to some schedulers; without, the whole field runs. */
export function Cumulative({ names: only }: { names?: string[] }) {
  const asked = useParameter("measure") ?? "";
  const measure = VIEWS[asked] ? asked : "total_time";
  const view = VIEWS[measure] as View;
  const source = useProgress();
  const all = useSchedulers();
  const palette = usePalette();
  const names = useMemo(() => all.filter((name) => !only || only.includes(name)), [all, only]);
  const curves = useMemo(() => (source.data ? curvesOf(source.data, names, view) : []), [source.data, names, view]);
  const option = useMemo(() => lines(curves, view, palette), [curves, view, palette]);
  const none = source.data && !names.some((name) => source.data?.schedulers[name]?.tasks.length);
  return (
    <Widget
      id="cumulative"
      title={view.title}
      hint="Everything a scheduler has spent so far, over its tasks. Good is flat; the gap to the Oracle is what was wasted."
      source={source}
      empty={none ? "No result has been stored yet." : undefined}
      actions={
        <Select
          label="Measure"
          value={measure}
          choices={Object.entries(VIEWS).map(([value, { label }]) => ({ value, label }))}
          onChoose={(value) => setParameters({ measure: value })}
        />
      }
      table={source.data ? <Totals progress={source.data} names={names} /> : undefined}
    >
      <div className="flex h-full gap-1">
        <div className="min-w-0 flex-1">
          <Chart option={option} label={`${view.title} of ${names.length} schedulers over their tasks`} />
        </div>
        <Finish curves={curves} show={view.show} />
      </div>
    </Widget>
  );
}

/** [task, total] of a scheduler, or what of it is beyond the Oracle's. */
export function pointsOf(series: ProgressSeries, of: Total, oracle?: ProgressSeries): [number, number][] {
  return series.tasks.map((task, at) => {
    const total = series[of][at] ?? 0;
    return [task, oracle ? total - totalAt(oracle, of, task) : total];
  });
}

/** The total after so many tasks, between the points that are known. */
function totalAt(series: ProgressSeries, of: Total, task: number): number {
  const after = series.tasks.findIndex((each) => each >= task);
  if (after === -1) return series[of].at(-1) ?? 0;
  const [from, start] = after > 0 ? [series.tasks[after - 1] ?? 0, series[of][after - 1] ?? 0] : [0, 0];
  const [to, end] = [series.tasks[after] ?? 0, series[of][after] ?? 0];
  return to === from ? end : start + ((end - start) * (task - from)) / (to - from);
}

interface Curve {
  name: string;
  points: [number, number][];
  last: number;
}

function curvesOf(progress: Progress, names: string[], view: View): Curve[] {
  const oracle = view.lost ? progress.schedulers[ORACLE] : undefined;
  return names.flatMap((name) => {
    const series = progress.schedulers[name];
    if (!series?.tasks.length) return [];
    const points = pointsOf(series, view.of, oracle);
    return [{ name, points, last: points.at(-1)?.[1] ?? 0 }];
  });
}

/** The legend, in the order in which the curves end. */
function Finish({ curves, show }: { curves: Curve[]; show: (value: number) => string }) {
  const order = [...curves].sort((left, right) => right.last - left.last);
  return (
    <ol className="flex w-28 shrink-0 flex-col justify-center gap-1.5 text-xs">
      {order.map((curve) => (
        <li key={curve.name} className="num leading-tight" data-scheduler={curve.name}>
          <SchedulerName name={curve.name} />
          <span className="block pl-4 text-[0.6875rem] text-muted" data-value={curve.last}>
            {show(curve.last)}
          </span>
        </li>
      ))}
    </ol>
  );
}

function lines(curves: Curve[], view: View, palette: Palette): ChartOption {
  const scale = scaleOf(view.quantity, Math.max(0, ...curves.map((curve) => curve.last)));
  return {
    grid: { left: 4, right: 14, top: 12, bottom: 4, containLabel: true },
    tooltip: {
      ...tooltip(palette),
      trigger: "axis",
      formatter: (points: unknown) => tip(points as TipPoint[], (value) => view.show(value * scale.divisor)),
    },
    xAxis: {
      ...axis(palette),
      type: "value",
      splitLine: { show: false },
      axisLabel: { ...axis(palette).axisLabel, formatter: (value: number) => (value < 100_000 ? count(value) : shortCount(value)) },
      max: "dataMax",
    },
    yAxis: {
      ...axis(palette),
      type: "value",
      min: 0,
      splitNumber: 4,
      axisLabel: { ...axis(palette).axisLabel, formatter: scale.label },
    },
    series: curves.map(({ name, points }) => {
      const colour = palette.colour(name);
      return {
        id: name,
        name: labelOf(name),
        type: "line" as const,
        showSymbol: false,
        data: points.map(([task, total]) => [task, total / scale.divisor]),
        color: colour,
        lineStyle: { width: name === ORACLE ? 1.5 : 2, type: name === ORACLE ? ("dashed" as const) : ("solid" as const) },
        emphasis: { disabled: true },
      };
    }),
  };
}

interface TipPoint {
  seriesName: string;
  color: string;
  value: [number, number];
}

function tip(points: TipPoint[], show: (value: number) => string): string {
  if (!points.length) return "";
  const sorted = [...points].sort((left, right) => right.value[1] - left.value[1]);
  const rows = sorted.map(
    (point) =>
      `<div style="display:flex;gap:16px;justify-content:space-between"><span style="color:${point.color}">${escapeHtml(point.seriesName)}</span><b>${show(point.value[1])}</b></div>`,
  );
  return `<div>after ${count(points[0]?.value[0])} tasks</div>${rows.join("")}`;
}

interface Totalled {
  name: string;
  tasks: number;
  total_time: number;
  total_energy: number;
  total_cost: number;
}

const COLUMNS: Column<Totalled>[] = [
  { key: "name", header: "Scheduler", value: (row) => row.name, show: (row) => <SchedulerName name={row.name} /> },
  { key: "tasks", header: "Tasks", numeric: true, value: (row) => row.tasks, show: (row) => count(row.tasks) },
  { key: "total_time", header: "Time", numeric: true, value: (row) => row.total_time, show: (row) => seconds(row.total_time) },
  { key: "total_energy", header: "Energy", numeric: true, value: (row) => row.total_energy, show: (row) => joules(row.total_energy) },
  { key: "total_cost", header: "Cost", numeric: true, value: (row) => row.total_cost, show: (row) => dollars(row.total_cost) },
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
        total_energy: at(series.total_energy),
        total_cost: at(series.total_cost),
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
