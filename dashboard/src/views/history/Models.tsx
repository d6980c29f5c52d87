import { useMutation } from "@tanstack/react-query";
import { RotateCcw } from "lucide-react";
import { useMemo, useState } from "react";
import { path, post } from "../../api/client";
import { createdAt, learnersOf, type Measure, measured, measureOf, outcome, versionsInUse } from "../../api/models";
import { type Polled, toastFailure, usePolled } from "../../api/polling";
import type { StoredModel } from "../../api/types";
import { clock, count, dateTime, score } from "../../format";
import { labelOf } from "../../schedulers";
import { type Palette, usePalette } from "../../theme";
import {
  axis,
  Badge,
  Button,
  Chart,
  type ChartOption,
  type Column,
  escapeHtml,
  numberColumn,
  Select,
  schedulerColumn,
  Table,
  toast,
  Widget,
} from "../../ui";

/** All models of a short run, the last hours of a long one. */
export const MAX_MODELS = 300;
const MAX_ROWS = 100;

export function useModels(run: string, everyMs: number): Polled<StoredModel[]> {
  return usePolled<StoredModel[]>(path("/api/models", { run, limit: MAX_MODELS }), everyMs);
}

export function Models({ source }: { source: Polled<StoredModel[]> }) {
  const palette = usePalette();
  const rows = useMemo(() => source.data ?? [], [source.data]);
  const learners = learnersOf(rows);
  const [selected, setSelected] = useState("");
  const first = learners.find((name) => isMeasured(rows.filter((row) => row.name === name))) ?? learners[0];
  const learner = learners.includes(selected) ? selected : (first ?? "");
  const own = useMemo(() => rows.filter((row) => row.name === learner), [rows, learner]);
  const measure = measureOf(own);
  const option = useMemo(() => timeline(own, measure, palette), [own, measure, palette]);
  return (
    <Widget
      id="models"
      title="Retraining"
      caption={CAPTION[measure.key]}
      source={source}
      empty={
        rows.length === 0
          ? "No model has been trained yet."
          : !isMeasured(own) &&
            `Models of ${labelOf(learner)} have no figure that can be compared; the table says why each was published.`
      }
      actions={
        learners.length > 0 && (
          <Select
            label="Learner"
            value={learner}
            choices={learners.map((name) => ({ value: name, label: labelOf(name) }))}
            onChoose={setSelected}
          />
        )
      }
      table={<MeasuredTable rows={measured(own, measure)} measure={measure} />}
    >
      <Chart option={option} label={`${measure.label} of every version of ${labelOf(learner)} over time`} />
    </Widget>
  );
}

function isMeasured(own: StoredModel[]): boolean {
  return measured(own, measureOf(own)).length > 0;
}

const CAPTION: Record<Measure["key"], string> = {
  score:
    "Time relative to the Oracle on results not used for training; 1 is the best. Hollow dots were not published: the model in use (line) was better.",
  loss: "The loss of every published policy. It falls while the agent learns, and again after a change of the workload.",
};

function timeline(rows: StoredModel[], measure: Measure, palette: Palette): ChartOption {
  const points = measured(rows, measure);
  const colour = palette.colour(rows[0]?.name ?? "");
  const dots = (shipped: boolean) => ({
    type: "scatter" as const,
    name: shipped ? "published" : "not published",
    symbolSize: 8,
    itemStyle: shipped ? { color: colour } : { color: "transparent", borderColor: palette.warn, borderWidth: 1.5 },
    data: points
      .filter((row) => Boolean(row.shipped) === shipped)
      .map((row) => ({ value: [createdAt(row) * 1000, measure.of(row)], row })),
  });
  const champion = rows
    .filter((row) => row.champion_score !== null)
    .map((row) => [createdAt(row) * 1000, row.champion_score])
    .reverse();
  return {
    grid: { left: 8, right: 18, top: 12, bottom: 40, containLabel: true },
    legend: { bottom: 0, itemWidth: 12, itemHeight: 8, textStyle: { color: palette.muted, fontSize: 11 } },
    tooltip: { trigger: "item", formatter: (hovered: unknown) => describe(hovered) },
    xAxis: {
      ...axis(palette),
      type: "time",
      splitLine: { show: false },
      minInterval: 1000, // or two ticks would have the same time
      axisLabel: { ...axis(palette).axisLabel, formatter: (value: number) => clock(value / 1000) },
    },
    yAxis: {
      ...axis(palette),
      type: "value",
      scale: true,
      axisLabel: { ...axis(palette).axisLabel, formatter: tickText },
    },
    series: [
      ...(measure.key === "score"
        ? [
            {
              type: "line" as const,
              name: "model in use",
              data: champion,
              step: "end" as const,
              showSymbol: false,
              silent: true,
              lineStyle: { width: 1.5, color: palette.faint },
              itemStyle: { color: palette.faint },
            },
            dots(false),
          ]
        : []),
      dots(true),
    ],
  };
}

/** All digits of a tick, which is a round number: rounded ones may be equal. */
function tickText(value: number): string {
  return String(Number(value.toPrecision(9)));
}

function describe(hovered: unknown): string {
  const row = (hovered as { data?: { row?: StoredModel } }).data?.row;
  if (!row) return "";
  return `<b>${escapeHtml(labelOf(row.name))} version ${row.version}</b><br>${escapeHtml(row.reason)}<br><span style="opacity:.7">${dateTime(createdAt(row))}</span>`;
}

function MeasuredTable({ rows, measure }: { rows: StoredModel[]; measure: Measure }) {
  const columns: Column<StoredModel>[] = [
    numberColumn("version", "Version"),
    { key: "shipped", header: "Outcome", value: outcome },
    {
      key: measure.key,
      header: measure.label,
      numeric: true,
      value: measure.of,
      show: (row) => score(measure.of(row)),
    },
  ];
  return <Table caption="Versions" columns={columns} rows={rows} rowKey={rowKey} />;
}

function rowKey(row: StoredModel): string {
  return `${row.name}.${row.version}.${row.created_at}`;
}

export function ModelTable({ source, active }: { source: Polled<StoredModel[]>; active: boolean }) {
  const rows = source.data ?? [];
  const inUse = versionsInUse(rows);
  return (
    <Widget
      id="model-list"
      title="Models"
      caption={`${rows.length > MAX_ROWS ? `The newest ${MAX_ROWS}` : "Newest first"}: published or not, and why. Lower scores are better; 1 is the Oracle.`}
      source={source}
      empty={rows.length === 0 && "No models yet: only schedulers that learn have models."}
      scroll
    >
      <Table
        caption="Models, newest first"
        columns={columns(inUse, active, source.refetch)}
        rows={rows.slice(0, MAX_ROWS)}
        rowKey={rowKey}
        rowAttributes={(row) => ({ "data-model": row.name, "data-version": String(row.version) })}
      />
    </Widget>
  );
}

function columns(inUse: Record<string, number>, active: boolean, refetch: () => void): Column<StoredModel>[] {
  return [
    schedulerColumn((row) => row.name),
    numberColumn("version", "Version"),
    {
      key: "shipped",
      header: "Outcome",
      value: outcome,
      show: (row) => <Outcome row={row} inUse={row.shipped && inUse[row.name] === row.version} />,
    },
    numberColumn("score", "Score", score),
    numberColumn("champion_score", "Model in use", score),
    {
      key: "reason",
      header: "Reason",
      value: (row) => row.reason,
      show: (row) => (
        <span className="block max-w-80 truncate text-muted" title={row.reason}>
          {row.reason}
        </span>
      ),
    },
    {
      key: "created_at",
      header: "Time",
      value: createdAt,
      show: (row) => <span title={dateTime(createdAt(row))}>{clock(createdAt(row))}</span>,
    },
    numberColumn("trained_on", "Trained on"),
    { key: "window", header: "Tasks", value: windowOf, hint: "The oldest and the newest task of the training data" },
    ...(active
      ? [
          {
            key: "rollback",
            header: "Roll back",
            value: () => null,
            show: (row: StoredModel) =>
              row.shipped && inUse[row.name] !== row.version ? <RollBack row={row} done={refetch} /> : null,
          },
        ]
      : []),
  ];
}

function windowOf(row: StoredModel): string {
  if (row.last_task < 0) return "generated";
  return `${row.first_task < 0 ? "generated" : count(row.first_task)} – ${count(row.last_task)}`;
}

function Outcome({ row, inUse }: { row: StoredModel; inUse: boolean }) {
  if (inUse) return <Badge tone="good">in use</Badge>;
  return <Badge tone={row.shipped ? "accent" : "warn"}>{outcome(row)}</Badge>;
}

function RollBack({ row, done }: { row: StoredModel; done: () => void }) {
  const rollBack = useMutation({
    mutationFn: () => post(`/api/models/${encodeURIComponent(row.run)}/${row.name}/rollback`, { version: row.version }),
    onSuccess: () => {
      toast(`${labelOf(row.name)} uses version ${row.version} again`);
      done();
    },
    onError: (error) => toastFailure("Could not roll back", error),
  });
  return (
    <Button
      variant="ghost"
      className="size-7!"
      disabled={rollBack.isPending}
      label={`Roll ${labelOf(row.name)} back to version ${row.version}`}
      icon={<RotateCcw aria-hidden className="size-3.5" />}
      onClick={() => rollBack.mutate()}
    />
  );
}
