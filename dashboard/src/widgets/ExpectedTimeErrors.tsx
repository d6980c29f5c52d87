import { useMemo } from "react";
import type { Polled } from "../api/polling";
import type { Errors, ErrorTrack } from "../api/types";
import { typeLabel } from "../devices";
import { count, percent, shortCount } from "../format";
import { type Palette, usePalette } from "../theme";
import {
  axis,
  Chart,
  type ChartOption,
  type Column,
  escapeHtml,
  numberColumn,
  Table,
  TOOLTIP_ROW,
  tooltip,
  Widget,
} from "../ui";
import { useTypeColours } from "./typeColours";

const CAPTION =
  "Expected and real execution time differ by at most this much for half of the tasks. Best: low, or falling as it learns.";

/** The errors of one device type. */
export interface TypeRow {
  type: string;
  tasks: number;
  first: number | null;
  newest: number | null;
  lowest: number | null;
  highest: number | null;
}

const COLUMNS: Column<TypeRow>[] = [
  { key: "type", header: "Device type", value: (row) => typeLabel(row.type) },
  numberColumn("first", "At first", percent, "Error of the first stretch of tasks that ran there"),
  numberColumn("newest", "Newest", percent, "Error of the newest stretch of tasks that ran there"),
  numberColumn("lowest", "Lowest", percent),
  numberColumn("highest", "Highest", percent),
  numberColumn("tasks", "Tasks", count, "Tasks that it was measured on"),
];

/** One row per device type, the largest error first. */
export function errorRows(track: ErrorTrack): TypeRow[] {
  const rows = Object.entries(track.types).map(([type, { error, tasks }]) => {
    const known = error.filter((each) => each !== null);
    return {
      type,
      tasks: tasks.reduce((sum, each) => sum + each, 0),
      first: known[0] ?? null,
      newest: known.at(-1) ?? null,
      lowest: known.length ? Math.min(...known) : null,
      highest: known.length ? Math.max(...known) : null,
    };
  });
  return rows.sort((left, right) => (right.newest ?? 0) - (left.newest ?? 0));
}

/** How far the times that one scheduler expects are from the real ones, by device type, over the run. */
export function ExpectedTimeErrors({ source, name }: { source: Polled<Errors>; name: string }) {
  const track = source.data?.schedulers[name];
  const rows = useMemo(() => (track ? errorRows(track) : []), [track]);
  const names = useMemo(() => rows.map((row) => row.type), [rows]);
  const palette = usePalette();
  const colour = useTypeColours(names);
  const option = useMemo(() => (track ? lines(track, rows, palette, colour) : {}), [track, rows, palette, colour]);
  return (
    <Widget
      id="errors"
      title="Error of expected times"
      caption={track?.exact === false ? `${CAPTION} From a sample of the tasks.` : CAPTION}
      source={source}
      empty={rows.length === 0 && "This scheduler expects no times."}
      table={
        <Table
          caption="Error of expected times by device type"
          columns={COLUMNS}
          rows={rows}
          rowKey={(row) => row.type}
          rowAttributes={(row) => ({ "data-type": row.type })}
        />
      }
    >
      <div className="flex h-full gap-1">
        <div className="min-w-0 flex-1">
          <Chart option={option} label={`Error of expected times on ${rows.length} device types over the tasks`} />
        </div>
        <Legend rows={rows} colour={colour} />
      </div>
    </Widget>
  );
}

function Legend({ rows, colour }: { rows: TypeRow[]; colour: (type: string) => string }) {
  return (
    <ul className="num flex w-28 shrink-0 flex-col justify-center gap-1 overflow-y-auto text-[0.6875rem]">
      {rows.map((row) => (
        <li key={row.type} className="flex items-center justify-between gap-1" data-type={row.type}>
          <span className="flex min-w-0 items-center gap-1.5">
            <span aria-hidden className="size-2 shrink-0 rounded-full" style={{ background: colour(row.type) }} />
            <span className="truncate">{typeLabel(row.type)}</span>
          </span>
          <span className="text-muted" data-value={row.newest ?? undefined}>
            {percent(row.newest)}
          </span>
        </li>
      ))}
    </ul>
  );
}

/** A type that runs few tasks has stretches without any: its line goes on to the next one. */
function lines(track: ErrorTrack, rows: TypeRow[], palette: Palette, colour: (type: string) => string): ChartOption {
  const label = axis(palette).axisLabel;
  return {
    grid: { left: 8, right: 12, top: 12, bottom: 4, containLabel: true },
    tooltip: {
      ...tooltip(palette),
      trigger: "axis",
      formatter: (points: unknown) => describe((points as { dataIndex: number }[])[0]?.dataIndex ?? 0, track, rows),
    },
    xAxis: {
      ...axis(palette),
      type: "value",
      min: 0,
      max: track.last.at(-1) ?? 1,
      splitNumber: 3,
      splitLine: { show: false },
      axisLabel: { ...label, formatter: (task: number) => `#${shortCount(task)}`, showMaxLabel: false },
    },
    yAxis: {
      ...axis(palette),
      type: "value",
      min: 0,
      splitNumber: 4,
      axisLabel: { ...label, formatter: (error: number) => percent(error, 0) },
    },
    series: rows.map(({ type }) => ({
      id: type,
      name: type,
      type: "line" as const,
      symbol: "circle",
      symbolSize: 3,
      connectNulls: true,
      color: colour(type),
      lineStyle: { width: 1.75 },
      emphasis: { disabled: true },
      data: track.first.map((first, at) => [
        (first + (track.last[at] ?? first)) / 2,
        track.types[type]?.error[at] ?? null,
      ]),
    })),
  } as ChartOption;
}

function describe(at: number, track: ErrorTrack, rows: TypeRow[]): string {
  const texts = rows.map(({ type }) => {
    const of = track.types[type];
    return `<div style="${TOOLTIP_ROW}"><span>${escapeHtml(typeLabel(type))}, ${count(of?.tasks[at])} tasks</span><b>${percent(of?.error[at])}</b></div>`;
  });
  return `<div>tasks #${count(track.first[at])} to #${count((track.last[at] ?? 1) - 1)}</div>${texts.join("")}`;
}
