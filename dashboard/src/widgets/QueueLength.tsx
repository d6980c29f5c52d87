import { useMemo } from "react";
import { useRunPolled } from "../api/runs";
import type { Queues } from "../api/types";
import { count, number, seconds, shortCount, tickCount } from "../format";
import { useSchedulers } from "../live";
import { labelOf } from "../schedulers";
import { type Palette, usePalette } from "../theme";
import {
  axis,
  Chart,
  type ChartOption,
  type Column,
  escapeHtml,
  numberColumn,
  SchedulerName,
  Select,
  schedulerColumn,
  Table,
  TOOLTIP_ROW,
  tooltip,
  Widget,
} from "../ui";
import { setParameters, useParameter } from "../url";
import { axisUnit } from "./axisUnits";
import type { ArenaWidget } from "./layout";

export const queueLength: ArenaWidget = {
  id: "queues",
  title: "Queue length",
  caption:
    "Tasks that have arrived and not finished, over simulated time. Best: low and level; a line that rises falls behind.",
  component: QueueLength,
  sizes: { wall: [4, 10], wide: [4, 9], medium: [3, 9] },
};

const STRETCHES: Record<string, { label: string; seconds: number | null; everyMs: number }> = {
  "300": { label: "Last 5 min", seconds: 300, everyMs: 4_000 },
  all: { label: "Whole run", seconds: null, everyMs: 10_000 },
};
const COUNTED = { unfinished: "Unfinished", waiting: "Waiting" } as const;
const SCALES = { log: "Logarithmic", linear: "Linear" } as const;

type Counted = keyof typeof COUNTED;
type Scale = keyof typeof SCALES;

/** An empty queue has no place on a logarithmic axis: it is drawn here, and labelled 0. */
const EMPTY = 0.5;

interface Row {
  name: string;
  now: number;
  mean: number;
  most: number;
  waiting: number;
}

const COLUMNS: Column<Row>[] = [
  schedulerColumn((row) => row.name),
  numberColumn("now", "Unfinished", count, "Tasks at the newest arrival"),
  numberColumn("waiting", "Waiting", count, "Tasks at the newest arrival that no device has started"),
  numberColumn("mean", "Mean", number, "Unfinished tasks, mean of the moments shown"),
  numberColumn("most", "Most", count, "Unfinished tasks, most of the moments shown"),
];

function choices(from: Record<string, string | { label: string }>) {
  return Object.entries(from).map(([value, each]) => ({ value, label: typeof each === "string" ? each : each.label }));
}

/** `names` limits it to some schedulers. */
export function QueueLength({ names: only }: { names?: string[] }) {
  const stretch = useParameter("queue_of") === "300" ? "300" : "all";
  const counted: Counted = useParameter("queue") === "waiting" ? "waiting" : "unfinished";
  const scale: Scale = useParameter("queue_axis") === "linear" ? "linear" : "log";
  const { seconds: length, everyMs } = STRETCHES[stretch] as (typeof STRETCHES)[string];
  const source = useRunPolled<Queues>("/queues", { seconds: length, points: 60 }, everyMs);
  const all = useSchedulers();
  const palette = usePalette();
  const { data } = source;
  const names = useMemo(() => all.filter((name) => !only || only.includes(name)), [all, only]);
  const rows = useMemo(() => (data ? rowsOf(data, names) : []), [data, names]);
  const option = useMemo(
    () => (data ? lines(data, rows, counted, scale, palette) : {}),
    [data, rows, counted, scale, palette],
  );
  const estimated = rows.filter(({ name }) => !data?.schedulers[name]?.exact).map(({ name }) => labelOf(name));
  return (
    <Widget
      {...queueLength}
      caption={
        estimated.length ? `${queueLength.caption} From a sample: ${estimated.join(", ")}.` : queueLength.caption
      }
      source={source}
      empty={data && rows.length === 0 ? "No result has been stored yet." : undefined}
      actions={
        <>
          <Select
            label="Tasks to count"
            data-testid="queue-counted"
            value={counted}
            choices={choices(COUNTED)}
            onChoose={(queue) => setParameters({ queue })}
          />
          <Select
            label="Stretch of time"
            data-testid="queue-stretch"
            value={stretch}
            choices={choices(STRETCHES)}
            onChoose={(queue_of) => setParameters({ queue_of })}
          />
          <Select
            label="Axis"
            data-testid="queue-axis"
            value={scale}
            choices={choices(SCALES)}
            onChoose={(queue_axis) => setParameters({ queue_axis })}
          />
        </>
      }
      table={
        <Table
          caption="Queue length of every scheduler"
          columns={COLUMNS}
          rows={rows}
          rowKey={(row) => row.name}
          rowAttributes={(row) => ({ "data-scheduler": row.name })}
        />
      }
    >
      <div className="flex h-full gap-1">
        <div className="min-w-0 flex-1">
          <Chart option={option} label={`Unfinished tasks of ${rows.length} schedulers over simulated time`} />
        </div>
        <Legend rows={rows} counted={counted} />
      </div>
    </Widget>
  );
}

/** The longest queue first, as in the chart. */
export function rowsOf(queues: Queues, names: readonly string[]): Row[] {
  const rows = names.flatMap((name) => {
    const track = queues.schedulers[name];
    if (!track?.time.length) return [];
    const { unfinished, waiting } = track;
    const mean = unfinished.reduce((sum, tasks) => sum + tasks, 0) / unfinished.length;
    const [now, waits] = [unfinished.at(-1) ?? 0, waiting.at(-1) ?? 0];
    return [{ name, now, mean, most: Math.max(...unfinished), waiting: waits }];
  });
  return rows.sort((left, right) => right.now - left.now);
}

function Legend({ rows, counted }: { rows: Row[]; counted: Counted }) {
  return (
    <ul className="legend num w-30 gap-0.5 text-[0.6875rem] leading-tight max-sm:hidden">
      {rows.map((row) => {
        const tasks = counted === "waiting" ? row.waiting : row.now;
        return (
          <li key={row.name} className="flex items-center justify-between gap-1" data-scheduler={row.name}>
            <SchedulerName name={row.name} />
            <span className="text-muted" data-value={tasks}>
              {shortCount(tasks)}
            </span>
          </li>
        );
      })}
    </ul>
  );
}

/** A point of the chart. */
export function placed(tasks: number, scale: Scale): number {
  return scale === "log" ? Math.max(tasks, EMPTY) : tasks;
}

function lines(queues: Queues, rows: Row[], counted: Counted, scale: Scale, palette: Palette): ChartOption {
  const tracks = rows.map(({ name }) => ({ name, track: queues.schedulers[name] as Queues["schedulers"][string] }));
  const times = tracks.flatMap(({ track }) => track.time);
  const unit = axisUnit("time", Math.max(0, ...times));
  return {
    grid: { left: 8, right: 12, top: 12, bottom: 4, containLabel: true },
    tooltip: {
      ...tooltip(palette),
      trigger: "axis",
      formatter: (points: unknown) => describe(points as Hovered[], tracks, counted, palette),
    },
    xAxis: {
      ...axis(palette),
      type: "value",
      min: Math.min(...times) / unit.divisor,
      max: Math.max(...times) / unit.divisor,
      splitLine: { show: false },
      axisLabel: { ...axis(palette).axisLabel, formatter: unit.label, showMinLabel: false, showMaxLabel: false },
    },
    yAxis: {
      ...axis(palette),
      type: scale === "log" ? "log" : "value",
      min: scale === "log" ? EMPTY : 0,
      axisLabel: {
        ...axis(palette).axisLabel,
        formatter: (value: number) => (scale === "log" && value <= EMPTY ? "0" : tickCount(value)),
      },
    },
    series: tracks.map(({ name, track }) => ({
      id: name,
      name,
      type: "line" as const,
      symbol: "none",
      color: palette.colour(name),
      lineStyle: { width: 1.75 },
      emphasis: { disabled: true },
      data: track.time.map((time, at) => [time / unit.divisor, placed(track[counted][at] ?? 0, scale)]),
    })),
  };
}

interface Hovered {
  seriesIndex: number;
  dataIndex: number;
}

function describe(
  points: Hovered[],
  tracks: { name: string; track: Queues["schedulers"][string] }[],
  counted: Counted,
  palette: Palette,
): string {
  const rows = points.flatMap(({ seriesIndex, dataIndex }) => {
    const line = tracks[seriesIndex];
    return line ? [{ ...line, time: line.track.time[dataIndex], tasks: line.track[counted][dataIndex] ?? 0 }] : [];
  });
  const texts = rows
    .sort((left, right) => right.tasks - left.tasks)
    .map(
      ({ name, tasks, track }) =>
        `<div style="${TOOLTIP_ROW}"><span style="color:${palette.colour(name)}">${escapeHtml(labelOf(name))}</span><b>${track.exact ? "" : "about "}${count(tasks)}</b></div>`,
    );
  return `<div>after ${seconds(rows[0]?.time)}</div>${texts.join("")}`;
}
