import { useMemo } from "react";
import { useRunPolled } from "../api/runs";
import type { Progress, ProgressSeries } from "../api/types";
import { count, dollars, joules, seconds, shortCount } from "../format";
import { useSchedulers } from "../live";
import { labelOf, ORACLE } from "../schedulers";
import { type Palette, usePalette } from "../theme";
import { axis, Chart, type ChartOption, type Column, escapeHtml, SchedulerName, Select, Table, tooltip, Widget } from "../ui";
import { setParameters, useParameter } from "../url";

type Measure = "total_time" | "total_energy" | "total_cost";

const MEASURES: Record<Measure, { label: string; show: (value: number) => string }> = {
  total_time: { label: "Time", show: seconds },
  total_energy: { label: "Energy", show: joules },
  total_cost: { label: "Cost", show: dollars },
};

/** `names` limits it to some schedulers; without, the whole field runs. */
export function Cumulative({ names: only }: { names?: string[] }) {
  const asked = useParameter("measure") as Measure | null;
  const measure = asked && MEASURES[asked] ? asked : "total_time";
  const source = useRunPolled<Progress>("/progress", { points: 120 });
  const all = useSchedulers();
  const palette = usePalette();
  const names = useMemo(() => all.filter((name) => !only || only.includes(name)), [all, only]);
  const option = useMemo(
    () => (source.data ? lines(source.data, names, measure, palette) : {}),
    [source.data, names, measure, palette],
  );
  const none = source.data && !names.some((name) => source.data?.schedulers[name]?.tasks.length);
  return (
    <Widget
      id="cumulative"
      title={`Cumulative ${MEASURES[measure].label.toLowerCase()}`}
      hint="Everything a scheduler has spent so far, over its tasks. Good is flat; the gap to the Oracle is what was wasted."
      source={source}
      empty={none ? "No result has been stored yet." : undefined}
      actions={
        <Select
          label="Measure"
          value={measure}
          choices={Object.entries(MEASURES).map(([value, { label }]) => ({ value, label }))}
          onChoose={(value) => setParameters({ measure: value })}
        />
      }
      table={source.data ? <Totals progress={source.data} names={names} /> : undefined}
    >
      <Chart option={option} label={`Cumulative ${measure.replace("total_", "")} of every scheduler over its tasks`} />
    </Widget>
  );
}

function lines(progress: Progress, names: string[], measure: Measure, palette: Palette): ChartOption {
  const { show } = MEASURES[measure];
  const shown = names.filter((name) => progress.schedulers[name]?.tasks.length);
  return {
    grid: { left: 8, right: 96, top: 12, bottom: 4, containLabel: true },
    tooltip: {
      ...tooltip(palette),
      trigger: "axis",
      formatter: (points: unknown) => tip(points as TipPoint[], show),
    },
    xAxis: {
      ...axis(palette),
      type: "value",
      splitLine: { show: false },
      axisLabel: { ...axis(palette).axisLabel, formatter: (value: number) => shortCount(value) },
      max: "dataMax",
    },
    yAxis: {
      ...axis(palette),
      type: "value",
      splitNumber: 4,
      axisLabel: { ...axis(palette).axisLabel, formatter: (value: number) => show(value) },
    },
    series: shown.map((name) => {
      const colour = palette.colour(name);
      const series = progress.schedulers[name] as ProgressSeries;
      return {
        id: name,
        name: labelOf(name),
        type: "line" as const,
        showSymbol: false,
        data: series.tasks.map((task, at) => [task, series[measure][at] ?? 0]),
        color: colour,
        lineStyle: { width: name === ORACLE ? 1.5 : 2, type: name === ORACLE ? ("dashed" as const) : ("solid" as const) },
        endLabel: { show: true, formatter: labelOf(name), color: colour, fontSize: 11, distance: 6 },
        labelLayout: { moveOverlap: "shiftY" as const },
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

interface Total {
  name: string;
  tasks: number;
  total_time: number;
  total_energy: number;
  total_cost: number;
}

const COLUMNS: Column<Total>[] = [
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
