import { useMemo } from "react";
import type { Analysis } from "../api/types";
import { count, number, percent } from "../format";
import { labelOf } from "../schedulers";
import { type Palette, usePalette } from "../theme";
import { axis, Chart, type ChartOption, type Column, numberColumn, Table, tooltip, Widget } from "../ui";
import type { ArenaWidget } from "./layout";
import { SchedulerSelect } from "./SchedulerSelect";
import { noTasksYet, useAnalysis } from "./selection";

export const heatmap: ArenaWidget = {
  id: "heatmap",
  title: "GPU share by task",
  caption: "Average GPU share by task size and intensity. Select the Oracle to see the best choice.",
  component: Heatmap,
  sizes: { wall: [4, 10], wide: [4, 9], medium: [3, 9] },
};

interface Cell {
  column: number;
  row: number;
  size: [number, number];
  intensity: [number, number];
  tasks: number;
  gpu_share: number;
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
  numberColumn("gpu_share", "On GPU", percent),
];

export function Heatmap({ fixed = false }: { fixed?: boolean }) {
  const source = useAnalysis();
  const palette = usePalette();
  const { data } = source;
  const cells = useMemo(() => (data ? cellsOf(data.heatmap) : []), [data]);
  const option = useMemo(() => (data ? tiles(data.heatmap, cells, palette) : {}), [data, cells, palette]);
  return (
    <Widget
      {...heatmap}
      title={fixed && data ? `GPU share by task: ${labelOf(data.scheduler)}` : heatmap.title}
      source={source}
      empty={noTasksYet(data)}
      actions={fixed ? undefined : <SchedulerSelect />}
      table={
        <Table
          caption="GPU share by size and intensity"
          columns={COLUMNS}
          rows={cells}
          rowKey={(cell) => `${cell.row}-${cell.column}`}
        />
      }
    >
      <Chart option={option} label={`GPU share by task size and intensity in ${cells.length} cells`} />
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

function tiles(map: Analysis["heatmap"], cells: Cell[], palette: Palette): ChartOption {
  const middles = (edges: number[], label: (from: number, to: number) => string) =>
    edges.slice(1).map((edge, at) => label(edges[at] ?? 0, edge));
  return {
    grid: { left: 8, right: 64, top: 8, bottom: 16, containLabel: true },
    tooltip: {
      ...tooltip(palette),
      formatter: (point: unknown) => {
        const cell = cells[(point as { dataIndex: number }).dataIndex];
        if (!cell) return "";
        return `size ${range(cell.size)}<br>intensity ${range(cell.intensity)}<br><b>${percent(cell.gpu_share)} on GPU</b> · ${count(cell.tasks)} tasks`;
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
    visualMap: {
      min: 0,
      max: 1,
      calculable: false,
      orient: "vertical",
      right: 0,
      top: "middle",
      itemHeight: 110,
      itemWidth: 10,
      text: ["GPU", "CPU"],
      textStyle: { color: palette.muted, fontSize: palette.small },
      inRange: { color: [palette.cpu, palette.theme === "dark" ? "#3a3f55" : "#d9dbe6", palette.gpu] },
    },
    series: [
      {
        id: "cells",
        type: "heatmap",
        data: cells.map((cell) => [cell.column, cell.row, cell.gpu_share]),
        itemStyle: { borderColor: palette.surface, borderWidth: 2, borderRadius: 4 },
        emphasis: { itemStyle: { borderColor: palette.ink } },
      },
    ],
  };
}
