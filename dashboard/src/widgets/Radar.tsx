import { useMemo } from "react";
import { overOracle, ratio, score } from "../format";
import { type ComparisonRow, useComparison } from "../live";
import { labelOf, ORACLE } from "../schedulers";
import { type Palette, usePalette } from "../theme";
import { Chart, type ChartOption, type Column, numberColumn, Table, tooltip, Widget } from "../ui";
import { useSelectedScheduler } from "./selection";

/** The end of the axes: a turnaround may be 300 times the Oracle's, and would hide everything else. */
const LONGEST_AXIS = 4;

const MEASURES = [
  { key: "avg_turnaround", label: "Turnaround" },
  { key: "avg_time", label: "Execution" },
  { key: "avg_energy", label: "Energy" },
  { key: "avg_cost", label: "Cost" },
] as const;

interface Ratio {
  key: string;
  label: string;
  ratio: number | null;
}

const COLUMNS: Column<Ratio>[] = [
  { key: "measure", header: "Measure", value: (row) => row.label },
  numberColumn("ratio", "Ratio to the Oracle", score),
  { key: "over", header: "vs Oracle", numeric: true, value: (row) => row.ratio, show: (row) => overOracle(row.ratio) },
];

/** The averages of a scheduler divided by those of the reference; null where that is 0. */
export function ratiosTo(row: ComparisonRow, reference: ComparisonRow): Ratio[] {
  return MEASURES.map(({ key, label }) => ({
    key,
    label,
    ratio: ratio(row[key], reference[key]),
  }));
}

export function Radar() {
  const selected = useSelectedScheduler();
  const rows = useComparison();
  const palette = usePalette();
  const row = rows.find((each) => each.name === selected);
  const oracle = rows.find((each) => each.name === ORACLE);
  const ratios = useMemo(() => (row && oracle ? ratiosTo(row, oracle) : []), [row, oracle]);
  const option = useMemo(() => (row ? radarChart(row.name, ratios, palette) : {}), [row, ratios, palette]);
  const missing = oracle ? (row?.tasks && oracle.tasks ? undefined : "No results yet.") : "This run has no Oracle.";
  return (
    <Widget
      id="radar"
      title="Compared with the Oracle"
      caption="Averages over those of the Oracle (dashed), drawn up to 4×. Smaller is better; the Oracle is the floor of execution only."
      loading={!row}
      empty={missing}
      table={
        <Table
          caption="Averages relative to the Oracle"
          columns={COLUMNS}
          rows={ratios}
          rowKey={(each) => each.key}
          sortable={false}
        />
      }
    >
      <Chart option={option} label={ratios.map((each) => `${each.label} ${overOracle(each.ratio)}`).join(", ")} />
    </Widget>
  );
}

function radarChart(name: string, ratios: Ratio[], palette: Palette): ChartOption {
  const colour = palette.colour(name);
  const largest = Math.max(1.25, ...ratios.map((each) => each.ratio ?? 0));
  const axisEnd = Math.min(LONGEST_AXIS, largest * 1.08);
  return {
    tooltip: { ...tooltip(palette), trigger: "item" },
    radar: {
      indicator: ratios.map((each) => ({ name: `${each.label}\n${overOracle(each.ratio)}`, max: axisEnd, min: 0 })),
      radius: "62%",
      center: ["50%", "52%"],
      splitNumber: 4,
      axisName: { color: palette.ink, fontSize: palette.small * 1.1, lineHeight: 16 },
      splitLine: { lineStyle: { color: palette.line } },
      splitArea: { show: false },
      axisLine: { lineStyle: { color: palette.line } },
    },
    series: [
      {
        id: "radar",
        type: "radar",
        symbolSize: 5,
        data: [
          {
            name: labelOf(ORACLE),
            value: ratios.map(() => 1),
            lineStyle: { type: "dashed", color: palette.colour(ORACLE), width: 1.5 },
            itemStyle: { color: palette.colour(ORACLE) },
          },
          {
            name: labelOf(name),
            value: ratios.map((each) => Math.min(each.ratio ?? 0, axisEnd)),
            lineStyle: { color: colour, width: 2 },
            itemStyle: { color: colour },
            areaStyle: { color: colour, opacity: 0.22 },
          },
        ],
      },
    ],
  };
}
