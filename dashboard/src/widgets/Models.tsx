import { useMemo } from "react";
import { path } from "../api/client";
import { createdAt, outcome } from "../api/models";
import { usePolled } from "../api/polling";
import type { StoredModel } from "../api/types";
import { clock, count, modelVersion, score } from "../format";
import { useRun } from "../live";
import { type Palette, usePalette } from "../theme";
import { axis, Badge, Chart, type ChartOption, type Column, numberColumn, Table, tooltip, Widget } from "../ui";

const COLUMNS: Column<StoredModel>[] = [
  numberColumn("version", "Version", modelVersion),
  {
    key: "shipped",
    header: "Published",
    value: outcome,
    show: (row) => <Badge tone={row.shipped ? "good" : "warn"}>{outcome(row)}</Badge>,
  },
  numberColumn(
    "score",
    "Score",
    score,
    "Total time relative to the Oracle, on results that were not used for training",
  ),
  numberColumn("champion_score", "Model in use", score, "Score of the model in use at that time, on the same results"),
  numberColumn("trained_on", "Trained on"),
  { key: "reason", header: "Reason", value: (row) => row.reason },
  { key: "created_at", header: "Time", value: (row) => row.created_at, show: (row) => clock(createdAt(row)) },
];

export function Models({ learner }: { learner: string }) {
  const run = useRun();
  const source = usePolled<StoredModel[]>(run && path("/api/models", { run, name: learner, limit: 100 }), 4_000);
  const palette = usePalette();
  const models = useMemo(() => source.data ?? [], [source.data]);
  const scored = useMemo(() => models.filter((each) => each.score !== null).reverse(), [models]);
  const option = useMemo(() => scoreChart(scored, palette.colour(learner), palette), [scored, learner, palette]);
  const table = (
    <Table
      caption="Models, newest first"
      columns={COLUMNS}
      rows={models}
      rowKey={(row) => `${row.version}-${row.created_at}`}
    />
  );
  return (
    <Widget
      id="models"
      title="Models"
      caption="Score of each new model and of the model in use, on results not used for training. Lower is better; 1 is the Oracle."
      source={source}
      empty={source.data && models.length === 0 ? "No model has been trained yet." : undefined}
      table={scored.length > 1 ? table : undefined}
      scroll={scored.length <= 1}
    >
      {scored.length > 1 ? <Chart option={option} label={`Scores of ${scored.length} models`} /> : table}
    </Widget>
  );
}

function scoreChart(models: StoredModel[], colour: string, palette: Palette): ChartOption {
  return {
    grid: { left: 8, right: 14, top: 26, bottom: 4, containLabel: true },
    legend: {
      top: 0,
      left: 4,
      itemWidth: 14,
      itemHeight: 8,
      textStyle: { color: palette.muted, fontSize: palette.small },
    },
    tooltip: {
      ...tooltip(palette),
      trigger: "axis",
      formatter: (points: unknown) => {
        const model = models[(points as { dataIndex: number }[])[0]?.dataIndex ?? 0];
        if (!model) return "";
        return `v${model.version}, ${outcome(model)}<br>score <b>${score(model.score)}</b> · model in use ${score(model.champion_score)}<br>trained on ${count(model.trained_on)}`;
      },
    },
    xAxis: { ...axis(palette), type: "category", data: models.map((model) => `v${model.version}`) },
    yAxis: {
      ...axis(palette),
      type: "value",
      scale: true,
      splitNumber: 3,
      // As many digits as the ticks need to differ; ECharts chooses round ones.
      axisLabel: { ...axis(palette).axisLabel, formatter: (value: number) => String(Number(value.toPrecision(8))) },
    },
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
        name: "Model in use",
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
