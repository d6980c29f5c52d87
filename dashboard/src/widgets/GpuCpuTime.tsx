import { useMemo } from "react";
import type { Analysis } from "../api/types";
import { typeLabel } from "../devices";
import { count, percent, ratio, seconds } from "../format";
import { labelOf } from "../schedulers";
import { type Palette, usePalette } from "../theme";
import {
  axis,
  Chart,
  type ChartOption,
  type Column,
  escapeHtml,
  failedColumn,
  numberColumn,
  schedulerColumn,
  Table,
  TOOLTIP_ROW,
  tooltip,
  Widget,
} from "../ui";
import { axisUnit } from "./axisUnits";
import type { ArenaWidget } from "./layout";
import { noTasksYet, useAnalysis } from "./selection";
import { useTypeColours } from "./typeColours";

export const gpuCpuTime: ArenaWidget = {
  id: "split",
  title: "Time by device type",
  caption: "Busy seconds of each device type for the newest tasks. Shorter is better.",
  component: GpuCpuTime,
  sizes: { wall: [4, 10], wide: [4, 9], medium: [3, 9] },
};

interface Row extends SplitPart {
  name: string;
}

type SplitPart = Analysis["split"][string];

const NO_TYPES: string[] = [];

function columnsOf(types: string[]): Column<Row>[] {
  return [
    schedulerColumn((row) => row.name),
    numberColumn("gpu_time", "Accelerators", seconds),
    numberColumn("cpu_time", "CPUs", seconds),
    ...types.map(
      (type, at): Column<Row> => ({
        key: `type_${type}`,
        header: typeLabel(type),
        numeric: true,
        value: (row) => row.type_time[at] ?? null,
        show: (row) => seconds(row.type_time[at]),
        hint: `Seconds of work on ${typeLabel(type)}`,
      }),
    ),
    numberColumn("gpu_tasks", "Accelerated", count, "Tasks of which a part ran on an accelerator"),
    numberColumn("tasks", "Tasks"),
    failedColumn(),
  ];
}

export function GpuCpuTime({ names }: { names?: string[] }) {
  const source = useAnalysis();
  const palette = usePalette();
  const { data } = source;
  const types = data?.types ?? NO_TYPES;
  const colour = useTypeColours(types);
  const rows = useMemo(() => (data ? rowsOf(data.split, names) : []), [data, names]);
  const option = useMemo(() => bars(rows, types, colour, palette), [rows, types, colour, palette]);
  return (
    <Widget
      {...gpuCpuTime}
      source={source}
      empty={noTasksYet(data)}
      table={
        <Table
          caption="Time by device type"
          columns={columnsOf(types)}
          rows={rows}
          rowKey={(row) => row.name}
          rowAttributes={(row) => ({ "data-scheduler": row.name })}
        />
      }
    >
      <Chart option={option} label={`Seconds of work on ${types.map(typeLabel).join(", ")} of every scheduler`} />
    </Widget>
  );
}

function rowsOf(split: Analysis["split"], names?: string[]): Row[] {
  return Object.entries(split)
    .filter(([name]) => !names || names.includes(name))
    .map(([name, part]) => ({ name, ...part }))
    .sort((left, right) => totalOf(right) - totalOf(left));
}

function totalOf(row: Row): number {
  return row.gpu_time + row.cpu_time;
}

function describe(row: Row, types: string[], colour: (type: string) => string): string {
  const lines = types.map(
    (type, at) =>
      `<div style="${TOOLTIP_ROW}"><span style="color:${colour(type)}">${escapeHtml(typeLabel(type))}</span><b>${seconds(row.type_time[at])}</b></div>`,
  );
  const share = percent(ratio(row.gpu_tasks, row.tasks));
  return `<b>${escapeHtml(labelOf(row.name))}</b>${lines.join("")}${share} of tasks used an accelerator`;
}

function bars(rows: Row[], types: string[], colour: (type: string) => string, palette: Palette): ChartOption {
  const unit = axisUnit("time", Math.max(0, ...rows.map(totalOf)));
  return {
    grid: { left: 8, right: 14, top: 24, bottom: 2, containLabel: true },
    legend: {
      type: "scroll",
      top: 0,
      left: 4,
      icon: "roundRect",
      itemWidth: 10,
      itemHeight: 10,
      pageTextStyle: { color: palette.muted },
      textStyle: { color: palette.muted, fontSize: palette.small },
    },
    tooltip: {
      ...tooltip(palette),
      trigger: "axis",
      axisPointer: { type: "shadow" },
      formatter: (points: unknown) => {
        const row = rows[(points as { dataIndex: number }[])[0]?.dataIndex ?? 0];
        return row ? describe(row, types, colour) : "";
      },
    },
    xAxis: {
      ...axis(palette),
      type: "value",
      splitNumber: 3,
      axisLabel: { ...axis(palette).axisLabel, formatter: unit.label },
    },
    yAxis: {
      ...axis(palette),
      type: "category",
      data: rows.map((row) => labelOf(row.name)),
      axisLabel: { ...axis(palette).axisLabel, hideOverlap: false, interval: 0 },
    },
    series: types.map((type, at) => ({
      id: type,
      name: typeLabel(type),
      type: "bar" as const,
      stack: "time",
      color: colour(type),
      barMaxWidth: 16,
      data: rows.map((row) => (row.type_time[at] ?? 0) / unit.divisor),
      emphasis: { disabled: true },
    })),
  };
}
