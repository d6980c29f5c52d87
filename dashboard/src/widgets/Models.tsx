import { useMemo } from "react";
import { path } from "../api/client";
import type { ModelRow } from "../api/types";
import { usePolled } from "../api/usePolled";
import { clock, count, number } from "../format";
import { useRun } from "../live";
import { type Palette, usePalette } from "../theme";
import { axis, Badge, Chart, type ChartOption, type Column, Table, tooltip, Widget } from "../ui";

const COLUMNS: Column<ModelRow>[] = [
  { key: "version", header: "Version", numeric: true, value: (row) => row.version, show: (row) => `v${row.version}` },
  { key: "shipped", header: "Shipped", value: (row) => (row.shipped ? "shipped" : "kept back"), show: (row) => <Badge tone={row.shipped ? "good" : "warn"}>{row.shipped ? "shipped" : "kept back"}</Badge> },
  { key: "score", header: "Score", numeric: true, value: (row) => row.score, show: (row) => number(row.score, 4), hint: "Total time over the Oracle's on results it has not seen" },
  { key: "champion_score", header: "In service", numeric: true, value: (row) => row.champion_score, show: (row) => number(row.champion_score, 4), hint: "Score of the model that was in service, on the same results" },
  { key: "trained_on", header: "Trained on", numeric: true, value: (row) => row.trained_on, show: (row) => count(row.trained_on) },
  { key: "reason", header: "Why", value: (row) => row.reason },
  { key: "created_at", header: "When", value: (row) => row.created_at, show: (row) => clock(Date.parse(row.created_at) / 1000) },
];

export function Models({ learner }: { learner: string }) {
  const run = useRun();
  const source = usePolled<ModelRow[]>(run && path("/api/models", { run, name: learner, limit: 100 }), 4_000);
  const palette = usePalette();
  const models = useMemo(() => source.data ?? [], [source.data]);
  const scored = useMemo(() => models.filter((each) => each.score !== null).reverse(), [models]);
  const option = useMemo(() => scores(scored, palette.colour(learner), palette), [scored, learner, palette]);
  const table = <Table caption="Models, newest first" columns={COLUMNS} rows={models} rowKey={(row) => `${row.version}-${row.created_at}`} />;
  return (
    <Widget
      id="models"
      title="Models"
      hint="Score of each new model on results it had not seen, beside the one in service. Lower is better; 1 is the Oracle."
      source={source}
      empty={source.data && models.length === 0 ? "No model has been trained yet." : undefined}
      table={scored.length > 1 ? table : undefined}
      scroll={scored.length <= 1}
    >
      {scored.length > 1 ? <Chart option={option} label={`Scores of ${scored.length} models`} /> : table}
    </Widget>
  );
}

function scores(models: ModelRow[], colour: string, palette: Palette): ChartOption {
  return {
    grid: { left: 8, right: 14, top: 26, bottom: 4, containLabel: true },
    legend: { top: 0, left: 4, itemWidth: 14, itemHeight: 8, textStyle: { color: palette.muted, fontSize: palette.small } },
    tooltip: {
      ...tooltip(palette),
      trigger: "axis",
      formatter: (points: unknown) => {
        const model = models[(points as { dataIndex: number }[])[0]?.dataIndex ?? 0];
        if (!model) return "";
        return `v${model.version}, ${model.shipped ? "shipped" : "kept back"}<br>score <b>${number(model.score, 4)}</b> · in service ${number(model.champion_score, 4)}<br>trained on ${count(model.trained_on)}`;
      },
    },
    xAxis: { ...axis(palette), type: "category", data: models.map((model) => `v${model.version}`) },
    yAxis: { ...axis(palette), type: "value", scale: true, splitNumber: 3, axisLabel: { ...axis(palette).axisLabel, formatter: (value: number) => number(value, 3) } },
    series: [
      {
        id: "score",
        name: "New model",
        type: "line",
        color: colour,
        data: models.map((model) => ({ value: model.score ?? NaN, symbol: model.shipped ? "circle" : "emptyCircle" })),
        symbolSize: 6,
        emphasis: { disabled: true },
      },
      {
        id: "champion",
        name: "In service",
        type: "line",
        color: palette.faint,
        showSymbol: false,
        lineStyle: { type: "dashed", width: 1.5 },
        data: models.map((model) => model.champion_score ?? NaN),
        emphasis: { disabled: true },
      },
    ],
  };
}
