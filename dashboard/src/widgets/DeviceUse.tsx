import { useMemo } from "react";
import { BUSY_MS, useRunPolled } from "../api/runs";
import type { Utilization } from "../api/types";
import { percent, seconds } from "../format";
import { labelOf } from "../schedulers";
import { type Palette, usePalette } from "../theme";
import { axis, Chart, type ChartOption, type Column, escapeHtml, Table, tooltip, Widget } from "../ui";
import { SubjectSelect } from "./SubjectSelect";
import { useProgress, useSubject } from "./subject";

type Device = Utilization["devices"][number];

const COLUMNS: Column<Device>[] = [
  { key: "name", header: "Device", value: (row) => row.name, show: (row) => deviceLabel(row.name) },
  { key: "utilization", header: "Busy", numeric: true, value: (row) => row.utilization, show: (row) => percent(row.utilization) },
];

export function deviceLabel(name: string): string {
  return name.replace("_", " ").replace(/^[a-z]+/, (kind) => kind.toUpperCase());
}

/** GPUs in shades of one hue, CPUs in another, so that the stack reads as two kinds. */
export function deviceColour(name: string, palette: Palette): string {
  const at = Number(name.split("_")[1] ?? 0);
  const base = name.startsWith("gpu") ? palette.gpu : palette.cpu;
  return shade(base, 1 - (at % 4) * 0.2);
}

function shade(hex: string, strength: number): string {
  const parts = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  return `rgba(${parts.join(", ")}, ${strength.toFixed(2)})`;
}

export function DeviceUse({ fixed = false }: { fixed?: boolean }) {
  const scheduler = useSubject();
  // Live results are there a moment before stored ones, of which this is made.
  const stored = useProgress().data;
  const ready = scheduler !== null && (stored?.schedulers[scheduler]?.tasks.length ?? 0) > 0;
  const source = useRunPolled<Utilization>("/utilization", { scheduler, seconds: 60 }, BUSY_MS, ready);
  const palette = usePalette();
  const { data } = source;
  const option = useMemo(() => (data ? areas(data, palette) : {}), [data, palette]);
  return (
    <Widget
      id="utilization"
      title={fixed && data ? `Devices at work: ${labelOf(data.scheduler)}` : "Devices at work"}
      hint="Devices with work over the last 60 simulated seconds, stacked. Good is even GPUs and no device that is always full."
      source={source}
      loading={stored === null}
      empty={ready ? undefined : "No task has run yet."}
      actions={
        <>
          {data && (
            <span className="num text-xs text-muted" title="Mean over all devices">
              {percent(data.average)}
            </span>
          )}
          {!fixed && <SubjectSelect />}
        </>
      }
      table={
        data ? <Table caption="Share of time each device was busy" columns={COLUMNS} rows={data.devices} rowKey={(row) => row.name} rowAttributes={(row) => ({ "data-device": row.name })} /> : undefined
      }
    >
      <Chart
        option={option}
        label={data ? `Devices of ${labelOf(data.scheduler)} were busy ${percent(data.average)} of the last minute` : "Utilisation"}
      />
    </Widget>
  );
}

function highest(use: Utilization): number {
  const sums = (use.devices[0]?.busy ?? []).map((_, at) => use.devices.reduce((sum, device) => sum + (device.busy[at] ?? 0), 0));
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
          (point) => `<div style="display:flex;gap:16px;justify-content:space-between"><span style="color:${point.color}">${escapeHtml(point.seriesName)}</span><b>${percent(point.value[1])}</b></div>`,
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
      // Up to the next whole device, so that a mostly idle cluster can still be read.
      max: Math.max(1, Math.ceil(highest(use))),
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
