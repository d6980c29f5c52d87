import { useMemo } from "react";
import type { Analysis, DeviceType } from "../api/types";
import { isAccelerator, typeLabel } from "../devices";
import { count, number, percent } from "../format";
import { useDeviceTypes } from "../live";
import { labelOf } from "../schedulers";
import { type Palette, usePalette } from "../theme";
import { axis, Chart, type ChartOption, type Column, escapeHtml, numberColumn, Table, tooltip, Widget } from "../ui";
import type { ArenaWidget } from "./layout";
import { SchedulerSelect } from "./SchedulerSelect";
import { noTasksYet, useAnalysis } from "./selection";
import { useTypeColours } from "./typeColours";

export const heatmap: ArenaWidget = {
  id: "heatmap",
  title: "Device by task",
  caption: "Average share on accelerators by task size and intensity. Select the Oracle to see the best choice.",
  component: Heatmap,
  sizes: { wall: [4, 10], wide: [4, 9], medium: [3, 9] },
};

const TYPES_CAPTION =
  "The device type that most tasks ran on, by size and intensity. Select the Oracle to see the best choice.";

const NO_TYPES: string[] = [];

interface Cell {
  column: number;
  row: number;
  size: [number, number];
  intensity: [number, number];
  tasks: number;
  gpu_share: number;
  /** Share of the tasks that each type ran. */
  types: number[];
}

const COLUMNS: Column<Cell>[] = [
  { key: "size", header: "Size", numeric: true, value: (cell) => cell.size[0], show: (cell) => range(cell.size) },
  {
    key: "intensity",
    header: "Intensity",
    numeric: true,
    value: (cell) => cell.intensity[0],
    show: (cell) => range(cell.intensity),
  },
  numberColumn("tasks", "Tasks"),
  numberColumn("gpu_share", "Accelerated", percent, "Average share on accelerators"),
];

function columnsOf(types: string[]): Column<Cell>[] {
  const byType = types.map(
    (type, at): Column<Cell> => ({
      key: `type_${type}`,
      header: typeLabel(type),
      numeric: true,
      value: (cell) => cell.types[at] ?? null,
      show: (cell) => percent(cell.types[at]),
      hint: `Share of the tasks that ran on ${typeLabel(type)}`,
    }),
  );
  return [...COLUMNS, ...byType];
}

/** The accelerator and the CPU of a cluster with one type of each: there the share says it all. */
export function pairOf(types: readonly string[], described: readonly DeviceType[]): [string, string] | null {
  const [accelerator, ...otherAccelerators] = types.filter((type) => isAccelerator(type, described));
  const [cpu, ...otherCpus] = types.filter((type) => !isAccelerator(type, described));
  return accelerator && cpu && otherAccelerators.length + otherCpus.length === 0 ? [accelerator, cpu] : null;
}

/** The position of the type that most tasks of a cell ran on; the first of equal ones. */
export function mostUsed(shares: readonly number[]): number {
  return shares.indexOf(Math.max(...shares));
}

export function Heatmap({ fixed = false }: { fixed?: boolean }) {
  const source = useAnalysis();
  const palette = usePalette();
  const { data } = source;
  const types = data?.types ?? NO_TYPES;
  const colour = useTypeColours(types);
  const described = useDeviceTypes();
  const pair = useMemo(() => pairOf(types, described), [types, described]);
  const cells = useMemo(() => (data ? cellsOf(data.heatmap) : []), [data]);
  const option = useMemo(() => {
    if (!data) return {};
    const values = pair ? byShare(cells, pair, palette) : byMostUsedType(cells, data.types, colour, palette);
    return { ...tiles(data.heatmap, cells, data.types, palette), ...values };
  }, [data, cells, pair, colour, palette]);
  return (
    <Widget
      {...heatmap}
      title={fixed && data ? `${heatmap.title}: ${labelOf(data.scheduler)}` : heatmap.title}
      caption={pair ? heatmap.caption : TYPES_CAPTION}
      source={source}
      empty={noTasksYet(data)}
      actions={fixed ? undefined : <SchedulerSelect />}
      table={
        <Table
          caption="Devices by size and intensity"
          columns={columnsOf(types)}
          rows={cells}
          rowKey={(cell) => `${cell.row}-${cell.column}`}
        />
      }
    >
      {/* A continuous and a piecewise scale cannot be merged. */}
      <Chart
        key={pair ? "share" : "type"}
        option={option}
        label={`Device by task size and intensity in ${cells.length} cells`}
      />
    </Widget>
  );
}

function cellsOf(map: Analysis["heatmap"]): Cell[] {
  const edges = (all: number[], at: number): [number, number] => [all[at] ?? 0, all[at + 1] ?? 0];
  return map.cells.flatMap((line, row) =>
    line.flatMap((cell, column) =>
      cell
        ? [{ column, row, size: edges(map.size_edges, column), intensity: edges(map.intensity_edges, row), ...cell }]
        : [],
    ),
  );
}

function range([from, to]: [number, number]): string {
  return `${number(from, 2)} – ${number(to, 2)}`;
}

function describe(cell: Cell, types: string[]): string {
  const shares = types.map((type, at) => `${escapeHtml(typeLabel(type))} ${percent(cell.types[at])}`);
  return [
    `size ${range(cell.size)}`,
    `intensity ${range(cell.intensity)}`,
    `<b>${percent(cell.gpu_share)} on accelerators</b> · ${count(cell.tasks)} tasks`,
    shares.join(" · "),
  ].join("<br>");
}

function tiles(map: Analysis["heatmap"], cells: Cell[], types: string[], palette: Palette): ChartOption {
  const middles = (edges: number[], label: (from: number, to: number) => string) =>
    edges.slice(1).map((edge, at) => label(edges[at] ?? 0, edge));
  // Room for the legend, so that it never covers a cell.
  const longest = Math.max(4, ...types.map((type) => typeLabel(type).length));
  return {
    grid: { left: 8, right: 34 + longest * palette.small * 0.62, top: 8, bottom: 16, containLabel: true },
    tooltip: {
      ...tooltip(palette),
      formatter: (point: unknown) => {
        const cell = cells[(point as { dataIndex: number }).dataIndex];
        return cell ? describe(cell, types) : "";
      },
    },
    xAxis: {
      ...axis(palette),
      type: "category",
      data: middles(map.size_edges, (from, to) => number(Math.sqrt(from * to), 2)),
      name: "size",
      nameLocation: "middle",
      nameGap: 22,
    },
    yAxis: {
      ...axis(palette),
      type: "category",
      data: middles(map.intensity_edges, (from, to) => ((from + to) / 2).toFixed(2)),
      name: "intensity",
      nameLocation: "middle",
      nameGap: 34,
    },
  };
}

function scale(palette: Palette) {
  return {
    orient: "vertical" as const,
    right: 0,
    top: "middle",
    textStyle: { color: palette.muted, fontSize: palette.small },
  };
}

function series(data: number[][], palette: Palette) {
  return {
    id: "cells",
    type: "heatmap" as const,
    data,
    itemStyle: { borderColor: palette.surface, borderWidth: 2, borderRadius: 4 },
    emphasis: { itemStyle: { borderColor: palette.ink } },
  };
}

function byShare(cells: Cell[], [accelerator, cpu]: [string, string], palette: Palette): ChartOption {
  return {
    visualMap: {
      ...scale(palette),
      min: 0,
      max: 1,
      calculable: false,
      itemHeight: 110,
      itemWidth: 10,
      text: [typeLabel(accelerator), typeLabel(cpu)],
      inRange: { color: [palette.cpu, palette.theme === "dark" ? "#3a3f55" : "#d9dbe6", palette.gpu] },
    },
    series: [
      series(
        cells.map((cell) => [cell.column, cell.row, cell.gpu_share]),
        palette,
      ),
    ],
  };
}

function byMostUsedType(
  cells: Cell[],
  types: string[],
  colour: (type: string) => string,
  palette: Palette,
): ChartOption {
  return {
    visualMap: {
      ...scale(palette),
      type: "piecewise",
      inverse: true,
      dimension: 2,
      itemWidth: 10,
      itemHeight: 10,
      pieces: types.map((type, at) => ({ value: at, label: typeLabel(type), color: colour(type) })),
    },
    series: [
      series(
        cells.map((cell) => [cell.column, cell.row, mostUsed(cell.types)]),
        palette,
      ),
    ],
  };
}
