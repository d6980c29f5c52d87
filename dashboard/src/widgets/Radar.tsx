import { useMemo } from "react";
import { number, overOracle } from "../format";
import { type ComparisonRow, useComparison } from "../live";
import { labelOf, ORACLE } from "../schedulers";
import { type Palette, usePalette } from "../theme";
import { Chart, type ChartOption, type Column, Table, tooltip, Widget } from "../ui";
import { useSubject } from "./subject";

const MEASURES = [
  { key: "avg_time", label: "Time" },
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
  { key: "ratio", header: "Times the Oracle", numeric: true, value: (row) => row.ratio, show: (row) => number(row.ratio, 4) },
  { key: "over", header: "vs Oracle", numeric: true, value: (row) => row.ratio, show: (row) => overOracle(row.ratio) },
];

/** A scheduler's averages over those of the reference; null where that one has spent nothing. */
export function ratiosTo(row: ComparisonRow, reference: ComparisonRow): Ratio[] {
  return MEASURES.map(({ key, label }) => ({
    key,
    label,
    ratio: reference[key] > 0 ? row[key] / reference[key] : null,
  }));
}

export function Radar() {
  const subject = useSubject();
  const rows = useComparison();
  const palette = usePalette();
  const row = rows.find((each) => each.name === subject);
  const oracle = rows.find((each) => each.name === ORACLE);
  const ratios = useMemo(() => (row && oracle ? ratiosTo(row, oracle) : []), [row, oracle]);
  const option = useMemo(() => (row ? web(row.name, ratios, palette) : {}), [row, ratios, palette]);
  const missing = oracle ? (row?.tasks && oracle.tasks ? undefined : "No result yet.") : "The Oracle does not compete in this run.";
  return (
    <Widget
      id="radar"
      title="Against the Oracle"
      hint="Average time, energy and cost as multiples of the Oracle's. Good is a shape no larger than the dashed one."
      loading={!row}
      empty={missing}
      table={<Table caption="Averages as multiples of the Oracle's" columns={COLUMNS} rows={ratios} rowKey={(each) => each.key} sortable={false} />}
    >
      <Chart
        option={option}
        label={ratios.map((each) => `${each.label} ${overOracle(each.ratio)}`).join(", ")}
      />
    </Widget>
  );
}

function web(name: string, ratios: Ratio[], palette: Palette): ChartOption {
  const colour = palette.colour(name);
  const reach = Math.max(1.25, ...ratios.map((each) => each.ratio ?? 0)) * 1.08;
  return {
    tooltip: { ...tooltip(palette), trigger: "item" },
    radar: {
      indicator: ratios.map((each) => ({ name: `${each.label}\n${overOracle(each.ratio)}`, max: reach, min: 0 })),
      radius: "76%",
      center: ["50%", "60%"],
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
            name: "Oracle",
            value: ratios.map(() => 1),
            lineStyle: { type: "dashed", color: palette.colour(ORACLE), width: 1.5 },
            itemStyle: { color: palette.colour(ORACLE) },
          },
          {
            name: labelOf(name),
            value: ratios.map((each) => each.ratio ?? 0),
            lineStyle: { color: colour, width: 2 },
            itemStyle: { color: colour },
            areaStyle: { color: colour, opacity: 0.22 },
          },
        ],
      },
    ],
  };
}
