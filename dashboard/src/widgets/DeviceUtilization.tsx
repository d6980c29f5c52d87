import { useMemo } from "react";
import { ACTIVE_MS, useRunPolled } from "../api/runs";
import type { Utilization } from "../api/types";
import { deviceShade } from "../devices";
import { count, number, percent, seconds } from "../format";
import { labelOf } from "../schedulers";
import { type Palette, usePalette } from "../theme";
import {
  axis,
  Chart,
  type ChartOption,
  type Column,
  escapeHtml,
  numberColumn,
  Select,
  Table,
  TOOLTIP_ROW,
  tooltip,
  Widget,
} from "../ui";
import { setParameters, useParameter } from "../url";
import type { ArenaWidget } from "./layout";
import { type Group, type GroupBy, groupsOf, MOST_AREAS } from "./meters";
import { SchedulerSelect } from "./SchedulerSelect";
import { useProgress, useSelectedScheduler } from "./selection";
import { useTypeColours } from "./typeColours";

export const deviceUtilization: ArenaWidget = {
  id: "utilization",
  title: "Device utilisation",
  caption: "Busy devices, stacked. Best: equal devices equally busy, and none busy all the time.",
  component: DeviceUtilization,
  sizes: { wall: [4, 11], wide: [4, 9], medium: [6, 9] },
};

/** The window has the length that fits the run: seconds for one with many arrivals, days for a slow trace. */
function captionOf(use: Utilization | null, strip: boolean): string {
  if (!use) return deviceUtilization.caption;
  const window = `the last ${seconds(use.end - use.start)} of simulated time`;
  const what = strip ? `Busy share over ${window}, one row each.` : `Busy devices over ${window}, stacked.`;
  return `${what} Best: equal devices equally busy, and none busy all the time.`;
}

const GROUPINGS: { value: GroupBy; label: string }[] = [
  { value: "type", label: "By type" },
  { value: "node", label: "By node" },
  { value: "device", label: "By device" },
];

/** Height of a row of the heat strip in pixels, and of its axis. */
const ROW = 4;
const AXIS = 48;

const COLUMNS: Column<Group>[] = [
  { key: "name", header: "Device", value: (row) => row.label },
  numberColumn("devices", "Devices"),
  numberColumn("utilization", "Busy", percent),
];

/** Single devices while there are few; types otherwise. */
function useGroupBy(meters: number): GroupBy {
  const selected = useParameter("devices");
  if (meters <= MOST_AREAS) return "device";
  return GROUPINGS.find(({ value }) => value === selected)?.value ?? "type";
}

export function DeviceUtilization({ fixed = false }: { fixed?: boolean }) {
  const scheduler = useSelectedScheduler();
  // Utilisation is computed from stored results, which arrive later than the live ones.
  const stored = useProgress().data;
  const ready = scheduler !== null && (stored?.schedulers[scheduler]?.tasks.length ?? 0) > 0;
  const source = useRunPolled<Utilization>("/utilization", { scheduler }, ACTIVE_MS, ready);
  const { data } = source;
  const by = useGroupBy(data?.devices.length ?? 0);
  const groups = useMemo(() => (data ? groupsOf(data.devices, by) : []), [data, by]);
  const strip = groups.length > MOST_AREAS;
  return (
    <Widget
      {...deviceUtilization}
      title={fixed && data ? `Device utilisation: ${labelOf(data.scheduler)}` : deviceUtilization.title}
      caption={captionOf(data, strip)}
      source={source}
      loading={stored === null}
      empty={ready ? undefined : "No task has run yet."}
      scroll={strip}
      actions={
        <>
          {data && (
            <span className="num text-xs text-muted" title="Average of all devices">
              {percent(data.average)}
            </span>
          )}
          {data && data.devices.length > MOST_AREAS && (
            <Select
              label="Group devices"
              data-testid="utilization-by"
              value={by}
              choices={GROUPINGS}
              onChoose={(devices) => setParameters({ devices })}
            />
          )}
          {!fixed && <SchedulerSelect />}
        </>
      }
      table={
        <Table
          caption="Share of time that devices were busy"
          columns={COLUMNS}
          rows={groups}
          rowKey={(row) => row.key}
          rowAttributes={(row) => ({ "data-device": row.key })}
        />
      }
    >
      {data && (strip ? <HeatStrip use={data} groups={groups} /> : <Areas use={data} groups={groups} />)}
    </Widget>
  );
}

interface ChartProps {
  use: Utilization;
  groups: Group[];
}

function labelFor(use: Utilization): string {
  return `Devices of ${labelOf(use.scheduler)} were busy ${percent(use.average)} of the last ${seconds(use.end - use.start)}`;
}

function Areas({ use, groups }: ChartProps) {
  const palette = usePalette();
  const colour = useTypeColours();
  const option = useMemo(() => areas(use, groups, colour, palette), [use, groups, colour, palette]);
  return <Chart option={option} label={labelFor(use)} />;
}

function HeatStrip({ use, groups }: ChartProps) {
  const palette = usePalette();
  const option = useMemo(() => strip(use, groups, palette), [use, groups, palette]);
  return (
    <div className="h-full" style={{ minHeight: groups.length * ROW + AXIS }} data-testid="heat-strip">
      <Chart option={option} label={`${labelFor(use)}; one row for each of ${groups.length}`} />
    </div>
  );
}

function peak(groups: Group[]): number {
  const sums = (groups[0]?.busy ?? []).map((_, at) =>
    groups.reduce((sum, group) => sum + (group.busy[at] ?? 0) * group.devices, 0),
  );
  return Math.max(0, ...sums);
}

/** The middle of a step, in seconds before the end of the window. */
function middleOf(use: Utilization, step: number): number {
  return use.start + (step + 0.5) * use.step - use.end;
}

function secondsBefore(value: number): string {
  if (value === 0) return "now";
  return Math.abs(value) < 120 ? `${number(value, 2)} s` : seconds(value);
}

function areas(use: Utilization, groups: Group[], colour: (type: string) => string, palette: Palette): ChartOption {
  return {
    grid: { left: 8, right: 12, top: 26, bottom: 4, containLabel: true },
    legend: {
      type: "scroll",
      top: 0,
      left: 4,
      icon: "roundRect",
      itemWidth: 10,
      itemHeight: 10,
      itemGap: 12,
      pageTextStyle: { color: palette.muted },
      textStyle: { color: palette.muted, fontSize: palette.small },
    },
    tooltip: {
      ...tooltip(palette),
      trigger: "axis",
      formatter: (points: unknown) => {
        const all = points as { seriesIndex: number; color: string; dataIndex: number; value: [number, number] }[];
        const rows = all.map((point) => describe(groups[point.seriesIndex], point.dataIndex, point.color));
        return `<div>${seconds(-(all[0]?.value[0] ?? 0))} before now</div>${rows.join("")}`;
      },
    },
    xAxis: {
      ...axis(palette),
      type: "value",
      min: use.start - use.end,
      max: 0,
      splitLine: { show: false },
      axisLabel: { ...axis(palette).axisLabel, formatter: secondsBefore },
    },
    yAxis: {
      ...axis(palette),
      type: "value",
      min: 0,
      // Not the number of devices: an almost idle cluster has to stay readable.
      max: Math.max(1, Math.ceil(peak(groups))),
      minInterval: 1,
      axisLabel: { ...axis(palette).axisLabel, formatter: (value: number) => `${value}` },
    },
    series: groups.map((group) => ({
      id: group.key,
      name: group.label,
      type: "line" as const,
      stack: "devices",
      step: "middle" as const,
      symbol: "none",
      color: deviceShade(colour(group.type), group.position, group.siblings),
      lineStyle: { width: 0 },
      areaStyle: { opacity: 0.85 },
      emphasis: { disabled: true },
      data: group.busy.map((share, at) => [middleOf(use, at), share * group.devices]),
    })),
  };
}

function describe(group: Group | undefined, step: number, colour: string): string {
  if (!group) return "";
  const share = percent(group.busy[step]);
  const text = group.devices > 1 ? `${share} of ${count(group.devices)}` : share;
  return `<div style="${TOOLTIP_ROW}"><span style="color:${colour}">${escapeHtml(group.label)}</span><b>${text}</b></div>`;
}

/** Rows between two labels: some twenty labels fit into the widget, and every fourth row of a longer strip. */
function labelInterval(rows: number): number {
  return Math.min(3, Math.ceil(rows / 18) - 1);
}

function strip(use: Utilization, groups: Group[], palette: Palette): ChartOption {
  const steps = groups[0]?.busy.length ?? 0;
  const times = Array.from({ length: steps }, (_, at) => middleOf(use, at));
  return {
    grid: { left: 8, right: 12, top: 24, bottom: 4, containLabel: true },
    tooltip: {
      ...tooltip(palette),
      formatter: (point: unknown) => {
        const [step = 0, row = 0] = (point as { data: number[] }).data;
        const when = `<div>${seconds(-(times[step] ?? 0))} before now</div>`;
        return `${when}${describe(groups[row], step, palette.ink)}`;
      },
    },
    visualMap: {
      min: 0,
      max: 1,
      calculable: false,
      orient: "horizontal",
      top: 0,
      right: 8,
      itemHeight: 70,
      itemWidth: 8,
      text: ["busy", "idle"],
      textStyle: { color: palette.muted, fontSize: palette.small },
      inRange: { color: [palette.theme === "dark" ? "#1b2438" : "#e3e8f2", palette.accent] },
    },
    xAxis: {
      ...axis(palette),
      type: "category",
      data: times.map((time) => secondsBefore(time)),
      axisLabel: { ...axis(palette).axisLabel, interval: Math.max(0, Math.floor(steps / 4) - 1) },
    },
    yAxis: {
      ...axis(palette),
      type: "category",
      inverse: true,
      data: groups.map((group) => group.label),
      axisLabel: { ...axis(palette).axisLabel, interval: labelInterval(groups.length) },
    },
    series: [
      {
        id: "strip",
        type: "heatmap",
        data: groups.flatMap((group, row) => group.busy.map((share, step) => [step, row, share])),
        itemStyle: { borderColor: palette.surface, borderWidth: groups.length > 60 ? 0 : 0.5 },
        emphasis: { disabled: true },
      },
    ],
  };
}
