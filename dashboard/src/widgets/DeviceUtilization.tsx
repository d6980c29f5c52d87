import { useMemo } from "react";
import { ACTIVE_MS, useRunPolled } from "../api/runs";
import type { Utilization } from "../api/types";
import { percent, seconds } from "../format";
import { labelOf } from "../schedulers";
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
import type { ArenaWidget } from "./layout";
import { SchedulerSelect } from "./SchedulerSelect";
import { useProgress, useSelectedScheduler } from "./selection";

export const deviceUtilization: ArenaWidget = {
  id: "utilization",
  title: "Device utilisation",
  caption:
    "Busy devices over the last 60 simulated seconds, stacked. Best: GPUs equally busy, and none busy all the time.",
  component: DeviceUtilization,
  sizes: { wall: [4, 11], wide: [4, 9], medium: [3, 9] },
};

type Device = Utilization["devices"][number];

const COLUMNS: Column<Device>[] = [
  { key: "name", header: "Device", value: (row) => row.name, show: (row) => deviceLabel(row.name) },
  numberColumn("utilization", "Busy", percent),
];

export function deviceLabel(name: string): string {
  return name.replace("_", " ").replace(/^[a-z]+/, (kind) => kind.toUpperCase());
}

/** Shades of one colour for GPUs, of another for CPUs. */
export function deviceColour(name: string, palette: Palette): string {
  const at = Number(name.split("_")[1] ?? 0);
  const base = name.startsWith("gpu") ? palette.gpu : palette.cpu;
  return shade(base, 1 - (at % 4) * 0.2);
}

function shade(hex: string, strength: number): string {
  const parts = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  return `rgba(${parts.join(", ")}, ${strength.toFixed(2)})`;
}

export function DeviceUtilization({ fixed = false }: { fixed?: boolean }) {
  const scheduler = useSelectedScheduler();
  // Utilisation is computed from stored results, which arrive later than the live ones.
  const stored = useProgress().data;
  const ready = scheduler !== null && (stored?.schedulers[scheduler]?.tasks.length ?? 0) > 0;
  const source = useRunPolled<Utilization>("/utilization", { scheduler, seconds: 60 }, ACTIVE_MS, ready);
  const palette = usePalette();
  const { data } = source;
  const option = useMemo(() => (data ? areas(data, palette) : {}), [data, palette]);
  return (
    <Widget
      {...deviceUtilization}
      title={fixed && data ? `Device utilisation: ${labelOf(data.scheduler)}` : deviceUtilization.title}
      source={source}
      loading={stored === null}
      empty={ready ? undefined : "No task has run yet."}
      actions={
        <>
          {data && (
            <span className="num text-xs text-muted" title="Average of all devices">
              {percent(data.average)}
            </span>
          )}
          {!fixed && <SchedulerSelect />}
        </>
      }
      table={
        data ? (
          <Table
            caption="Share of time each device was busy"
            columns={COLUMNS}
            rows={data.devices}
            rowKey={(row) => row.name}
            rowAttributes={(row) => ({ "data-device": row.name })}
          />
        ) : undefined
      }
    >
      <Chart
        option={option}
        label={
          data
            ? `Devices of ${labelOf(data.scheduler)} were busy ${percent(data.average)} of the last minute`
            : "Utilisation"
        }
      />
    </Widget>
  );
}

function peak(use: Utilization): number {
  const sums = (use.devices[0]?.busy ?? []).map((_, at) =>
    use.devices.reduce((sum, device) => sum + (device.busy[at] ?? 0), 0),
  );
  return Math.max(0, ...sums);
}

function areas(use: Utilization, palette: Palette): ChartOption {
  const now = use.end;
  return {
    grid: { left: 8, right: 12, top: 26, bottom: 4, containLabel: true },
    legend: {
      top: 0,
      left: 4,
      icon: "roundRect",
      itemWidth: 10,
      itemHeight: 10,
      itemGap: 12,
      textStyle: { color: palette.muted, fontSize: palette.small },
    },
    tooltip: {
      ...tooltip(palette),
      trigger: "axis",
      formatter: (points: unknown) => {
        const all = points as { seriesName: string; color: string; value: [number, number] }[];
        const at = all[0]?.value[0] ?? 0;
        const rows = all.map(
          (point) =>
            `<div style="${TOOLTIP_ROW}"><span style="color:${point.color}">${escapeHtml(point.seriesName)}</span><b>${percent(point.value[1])}</b></div>`,
        );
        return `<div>${seconds(-at)} before now</div>${rows.join("")}`;
      },
    },
    xAxis: {
      ...axis(palette),
      type: "value",
      min: use.start - now,
      max: 0,
      splitLine: { show: false },
      axisLabel: { ...axis(palette).axisLabel, formatter: (value: number) => (value === 0 ? "now" : `${value} s`) },
    },
    yAxis: {
      ...axis(palette),
      type: "value",
      min: 0,
      // Not the number of devices: an almost idle cluster has to stay readable.
      max: Math.max(1, Math.ceil(peak(use))),
      minInterval: 1,
      axisLabel: { ...axis(palette).axisLabel, formatter: (value: number) => `${value}` },
    },
    series: use.devices.map((device) => ({
      id: device.name,
      name: deviceLabel(device.name),
      type: "line" as const,
      stack: "devices",
      step: "middle" as const,
      symbol: "none",
      color: deviceColour(device.name, palette),
      lineStyle: { width: 0 },
      areaStyle: { opacity: 0.85 },
      emphasis: { disabled: true },
      data: device.busy.map((share, at) => [use.start + (at + 0.5) * use.step - now, share]),
    })),
  };
}
