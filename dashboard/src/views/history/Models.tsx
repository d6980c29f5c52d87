import { RotateCcw } from "lucide-react";
import { useMemo, useState } from "react";
import { path, post } from "../../api/client";
import type { ModelRow } from "../../api/types";
import { type Polled, usePolled } from "../../api/usePolled";
import { clock, count, dateTime, number } from "../../format";
import { labelOf } from "../../schedulers";
import { type Palette, usePalette } from "../../theme";
import { axis, Badge, Button, Chart, type ChartOption, type Column, escapeHtml, SchedulerName, Select, Table, toast, Widget } from "../../ui";
import { createdAt, inService, judged, learnersOf, measureOf, type Measure } from "./versions";

/** The whole of a short run; of one that goes on for days, the last hours. */
export const MOST_MODELS = 300;
const MOST_ROWS = 100;

export function useModels(run: string, every: number): Polled<ModelRow[]> {
  return usePolled<ModelRow[]>(path("/api/models", { run, limit: MOST_MODELS }), every);
}

export function Models({ source }: { source: Polled<ModelRow[]> }) {
  const palette = usePalette();
  const rows = useMemo(() => source.data ?? [], [source.data]);
  const learners = learnersOf(rows);
  const [asked, setAsked] = useState("");
  const learner = learners.includes(asked) ? asked : (learners[0] ?? "");
  const own = useMemo(() => rows.filter((row) => row.name === learner), [rows, learner]);
  const measure = measureOf(own);
  const option = useMemo(() => timeline(own, measure, palette), [own, measure, palette]);
  return (
    <Widget
      id="models"
      title="Retraining"
      hint={HINT[measure.key]}
      source={source}
      empty={rows.length === 0 && "No learner of this run has made a model yet."}
      actions={
        learners.length > 0 && (
          <Select
            label="Learner"
            value={learner}
            choices={learners.map((name) => ({ value: name, label: labelOf(name) }))}
            onChoose={setAsked}
          />
        )
      }
      table={<MeasuredTable rows={judged(own, measure)} measure={measure} />}
    >
      <Chart option={option} label={`${measure.label} of every version of ${labelOf(learner)} over time`} />
    </Widget>
  );
}

const HINT: Record<Measure["key"], string> = {
  score: "Time over the Oracle's on unseen results; 1 is perfect. Full dots went into service, hollow ones lost to the champion (line).",
  loss: "The loss of every policy that was shipped. One that falls, and falls again after a change of the workload, is learning.",
};

function timeline(rows: ModelRow[], measure: Measure, palette: Palette): ChartOption {
  const points = judged(rows, measure);
  const colour = palette.colour(rows[0]?.name ?? "");
  const dot = (shipped: boolean) => ({
    type: "scatter" as const,
    name: shipped ? "shipped" : "kept back",
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
      axisLabel: { ...axis(palette).axisLabel, formatter: (value: number) => clock(value / 1000) },
    },
    yAxis: {
      ...axis(palette),
      type: "value",
      scale: true,
      axisLabel: { ...axis(palette).axisLabel, formatter: (value: number) => number(value) },
    },
    series: [
      ...(measure.key === "score"
        ? [
            {
              type: "line" as const,
              name: "champion",
              data: champion,
              step: "end" as const,
              showSymbol: false,
              silent: true,
              lineStyle: { width: 1.5, color: palette.faint },
              itemStyle: { color: palette.faint },
            },
            dot(false),
          ]
        : []),
      dot(true),
    ],
  };
}

function describe(hovered: unknown): string {
  const row = (hovered as { data?: { row?: ModelRow } }).data?.row;
  if (!row) return "";
  return `<b>${escapeHtml(labelOf(row.name))} version ${row.version}</b><br>${escapeHtml(row.reason)}<br><span style="opacity:.7">${dateTime(createdAt(row))}</span>`;
}

function MeasuredTable({ rows, measure }: { rows: ModelRow[]; measure: Measure }) {
  const columns: Column<ModelRow>[] = [
    { key: "version", header: "Version", numeric: true, value: (row) => row.version },
    { key: "shipped", header: "Outcome", value: (row) => (row.shipped ? "shipped" : "kept back") },
    { key: measure.key, header: measure.label, numeric: true, value: measure.of, show: (row) => number(measure.of(row), 4) },
  ];
  return <Table caption="Versions" columns={columns} rows={rows} rowKey={rowKey} />;
}

function rowKey(row: ModelRow): string {
  return `${row.name}.${row.version}.${row.created_at}`;
}

export function ModelTable({ source, active }: { source: Polled<ModelRow[]>; active: boolean }) {
  const rows = source.data ?? [];
  const serving = inService(rows);
  return (
    <Widget
      id="model-list"
      title="Models"
      hint={`${rows.length > MOST_ROWS ? `The newest ${MOST_ROWS}` : "Newest first"}: what went into service or was kept back, and why. Score 1 is the Oracle; lower is better.`}
      source={source}
      empty={rows.length === 0 && "No models yet: they come with the learners hybrid_ml and rl_agent."}
      scroll
    >
      <Table
        caption="Models, newest first"
        columns={columns(serving, active, source.refetch)}
        rows={rows.slice(0, MOST_ROWS)}
        rowKey={rowKey}
        rowAttributes={(row) => ({ "data-model": row.name, "data-version": String(row.version) })}
      />
    </Widget>
  );
}

function columns(serving: Record<string, number>, active: boolean, refetch: () => void): Column<ModelRow>[] {
  return [
    { key: "name", header: "Learner", value: (row) => row.name, show: (row) => <SchedulerName name={row.name} /> },
    { key: "version", header: "Version", numeric: true, value: (row) => row.version },
    {
      key: "shipped",
      header: "Outcome",
      value: (row) => (row.shipped ? "shipped" : "kept back"),
      show: (row) => <Outcome row={row} serves={Boolean(row.shipped) && serving[row.name] === row.version} />,
    },
    { key: "score", header: "Score", numeric: true, value: (row) => row.score, show: (row) => number(row.score, 4) },
    { key: "champion_score", header: "Champion", numeric: true, value: (row) => row.champion_score, show: (row) => number(row.champion_score, 4) },
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
    { key: "created_at", header: "Made", value: createdAt, show: (row) => <span title={dateTime(createdAt(row))}>{clock(createdAt(row))}</span> },
    { key: "trained_on", header: "Learned from", numeric: true, value: (row) => row.trained_on, show: (row) => count(row.trained_on) },
    { key: "window", header: "Tasks", value: windowOf, hint: "the oldest and the newest task it learned from" },
    ...(active
      ? [
          {
            key: "rollback",
            header: "Put back",
            value: () => null,
            show: (row: ModelRow) =>
              row.shipped && serving[row.name] !== row.version ? <RollBack row={row} done={refetch} /> : null,
          },
        ]
      : []),
  ];
}

function windowOf(row: ModelRow): string {
  if (row.last_task < 0) return "generated";
  return `${row.first_task < 0 ? "generated" : count(row.first_task)} – ${count(row.last_task)}`;
}

function Outcome({ row, serves }: { row: ModelRow; serves: boolean }) {
  if (serves) return <Badge tone="good">in service</Badge>;
  return row.shipped ? <Badge tone="accent">shipped</Badge> : <Badge tone="warn">kept back</Badge>;
}

function RollBack({ row, done }: { row: ModelRow; done: () => void }) {
  const [busy, setBusy] = useState(false);
  const go = async () => {
    setBusy(true);
    try {
      await post(`/api/models/${encodeURIComponent(row.run)}/${row.name}/rollback`, { version: row.version });
      toast(`${labelOf(row.name)} works with version ${row.version} again`);
      done();
    } catch (error) {
      toast(`Not put back: ${error instanceof Error ? error.message : String(error)}`, "bad");
    } finally {
      setBusy(false);
    }
  };
  return (
    <Button
      look="ghost"
      className="size-7!"
      disabled={busy}
      label={`Put ${labelOf(row.name)} version ${row.version} back into service`}
      icon={<RotateCcw aria-hidden className="size-3.5" />}
      onClick={() => void go()}
    />
  );
}
