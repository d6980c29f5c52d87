import { useMemo } from "react";
import type { Analysis } from "../api/types";
import { count, number, percent } from "../format";
import { labelOf } from "../schedulers";
import { type Palette, usePalette } from "../theme";
import { axis, Chart, type ChartOption, type Column, Table, tooltip, Widget } from "../ui";
import { SubjectSelect } from "./SubjectSelect";
import { nothingYet, useAnalysis } from "./subject";

interface Cell {
  column: number;
  row: number;
  size: [number, number];
  intensity: [number, number];
  tasks: number;
  gpu_share: number;
}

const COLUMNS: Column<Cell>[] = [
  { key: "size", header: "Size", numeric: true, value: (cell) => cell.size[0], show: (cell) => span(cell.size) },
  { key: "intensity", header: "Intensity", numeric: true, value: (cell) => cell.intensity[0], show: (cell) => span(cell.intensity) },
  { key: "tasks", header: "Tasks", numeric: true, value: (cell) => cell.tasks, show: (cell) => count(cell.tasks) },
  { key: "gpu_share", header: "On GPU", numeric: true, value: (cell) => cell.gpu_share, show: (cell) => percent(cell.gpu_share) },
];

export function Heatmap({ fixed = false }: { fixed?: boolean }) {
  const source = useAnalysis();
  const palette = usePalette();
  const { data } = source;
  const cells = useMemo(() => (data ? cellsOf(data.heatmap) : []), [data]);
  const option = useMemo(() => (data ? tiles(data.heatmap, cells, palette) : {}), [data, cells, palette]);
  return (
    <Widget
      id="heatmap"
      title={fixed && data ? `Where the GPU wins: ${labelOf(data.scheduler)}` : "Where the GPU wins"}
      hint="Mean share sent to a GPU, by task size and intensity. Choose the Oracle to see what is right; a good policy looks alike."
      source={source}
      empty={nothingYet(data)}
      actions={fixed ? undefined : <SubjectSelect />}
      table={<Table caption="GPU share by size and intensity" columns={COLUMNS} rows={cells} rowKey={(cell) => `${cell.row}-${cell.column}`} />}
    >
      <Chart option={option} label={`GPU share by task size and intensity in ${cells.length} cells`} />
    </Widget>
  );
}

function cellsOf(map: Analysis["heatmap"]): Cell[] {
  const edges = (all: number[], at: number): [number, number] => [all[at] ?? 0, all[at + 1] ?? 0];
  return map.cells.flatMap((line, row) =>
    line.flatMap((cell, column) =>
      cell ? [{ column, row, size: edges(map.size_edges, column), intensity: edges(map.intensity_edges, row), ...cell }] : [],
    ),
  );
}

function span([from, to]: [number, number]): string {
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
        return `size ${span(cell.size)}<br>intensity ${span(cell.intensity)}<br><b>${percent(cell.gpu_share)} on GPU</b> · ${count(cell.tasks)} tasks`;
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
