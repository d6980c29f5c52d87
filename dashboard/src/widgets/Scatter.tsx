import { useMemo } from "react";
import type { Analysis } from "../api/types";
import { typeLabel } from "../devices";
import { count, megabytes, number, percent, shortCount } from "../format";
import { type Palette, usePalette } from "../theme";
import {
  axis,
  Badge,
  Chart,
  type ChartOption,
  type Column,
  escapeHtml,
  numberColumn,
  Table,
  taskColumn,
  tooltip,
  Widget,
} from "../ui";
import { openView } from "../url";
import type { ArenaWidget } from "./layout";
import { noTasksYet, useAnalysis } from "./selection";
import { useTypeColours } from "./typeColours";

type Dot = Analysis["scatter"][number];

export const scatter: ArenaWidget = {
  id: "scatter",
  title: "Workload",
  caption:
    "Each dot is a task: size, intensity, memory (area) and device type (colour); failed ones are diamonds. Click one for its details.",
  component: Scatter,
  sizes: { wall: [4, 10], wide: [4, 9], medium: [3, 9] },
};

const COLUMNS: Column<Dot>[] = [
  taskColumn(),
  numberColumn("size", "Size", number),
  numberColumn("compute_intensity", "Intensity", number),
  numberColumn("memory_required", "Memory", megabytes),
  { key: "type", header: "Device type", value: (dot) => dot.type, show: (dot) => typeLabel(dot.type) },
  numberColumn("gpu_fraction", "Accelerated", percent, "Share sent to an accelerator"),
  {
    key: "failed",
    header: "Status",
    value: (dot) => (dot.failed ? "failed" : "ok"),
    show: (dot) => (dot.failed ? <Badge tone="bad">failed</Badge> : "ok"),
  },
];

const NO_TYPES: string[] = [];

export function Scatter() {
  const source = useAnalysis();
  const palette = usePalette();
  const { data } = source;
  const types = data?.types ?? NO_TYPES;
  const colour = useTypeColours(types);
  const option = useMemo(
    () => (data ? dots(data.scatter, types, colour, palette) : {}),
    [data, types, colour, palette],
  );
  return (
    <Widget
      {...scatter}
      source={source}
      empty={noTasksYet(data)}
      table={
        data ? (
          <Table
            caption="The newest tasks"
            columns={COLUMNS}
            rows={data.scatter}
            rowKey={(dot) => String(dot.task_id)}
          />
        ) : undefined
      }
    >
      <Chart
        option={option}
        label={`${data?.scatter.length ?? 0} tasks by size and intensity`}
        onPick={({ data: picked }) => openView("task", { task: (picked as Picked).task })}
      />
    </Widget>
  );
}

interface Picked {
  task: number;
}

function describe(dot: Dot): string {
  const place = `${percent(dot.gpu_fraction)} sent to an accelerator · ran longest on ${escapeHtml(typeLabel(dot.type))}`;
  return [
    `task ${count(dot.task_id)}${dot.failed ? " (failed)" : ""}`,
    `size ${number(dot.size)} · intensity ${number(dot.compute_intensity)} · ${megabytes(dot.memory_required)}`,
    `<b>${place}</b>`,
  ].join("<br>");
}

function dots(scatter: Dot[], types: string[], colour: (type: string) => string, palette: Palette): ChartOption {
  const byTask = new Map(scatter.map((dot) => [dot.task_id, dot]));
  return {
    grid: { left: 8, right: 14, top: 26, bottom: 16, containLabel: true },
    legend: {
      type: "scroll",
      top: 0,
      left: 4,
      icon: "circle",
      itemWidth: 10,
      itemHeight: 10,
      pageTextStyle: { color: palette.muted },
      textStyle: { color: palette.muted, fontSize: palette.small },
    },
    tooltip: {
      ...tooltip(palette),
      formatter: (point: unknown) => {
        const dot = byTask.get((point as { data: Picked }).data.task);
        return dot ? describe(dot) : "";
      },
    },
    xAxis: {
      ...axis(palette),
      type: "log",
      min: "dataMin",
      max: "dataMax",
      name: "size",
      nameLocation: "middle",
      nameGap: 22,
      axisLabel: { ...axis(palette).axisLabel, formatter: (value: number) => shortCount(value) },
    },
    yAxis: { ...axis(palette), type: "value", min: 0, max: 1, interval: 0.25 },
    series: types.map((type) => ({
      id: type,
      name: typeLabel(type),
      type: "scatter" as const,
      color: colour(type),
      data: scatter
        .filter((dot) => dot.type === type)
        .map((dot) => ({
          value: [dot.size, dot.compute_intensity, dot.memory_required],
          task: dot.task_id,
          symbol: dot.failed ? "diamond" : "circle",
        })),
      symbolSize: (value: number[]) => 4 + Math.min(20, Math.sqrt(value[2] ?? 0) / 6),
      itemStyle: { opacity: 0.7 },
    })),
  };
}
