import { useMemo } from "react";
import { runPath } from "../../api/client";
import { type Polled, usePolled } from "../../api/polling";
import { type Metric, totalPoints, totals } from "../../api/progress";
import type { Progress, RunSpec } from "../../api/types";
import { count, dollars, joules, overOracle, seconds } from "../../format";
import { labelOf, ORACLE } from "../../schedulers";
import { usePalette } from "../../theme";
import { Chart, type Column, failedColumn, numberColumn, Select, schedulerColumn, Table, Widget } from "../../ui";
import { driftMarks, type Mark } from "../../ui/marks";
import { setParameters, useParameter } from "../../url";
import { lineChart, unitOf } from "./lineChart";
import { referenceOf, regret } from "./regret";

const INTERVALS = 40;

interface MetricFormat {
  label: string;
  format: (value: number | null) => string;
}

export const METRICS: Record<Metric, MetricFormat> = {
  turnaround: { label: "Turnaround", format: seconds },
  time: { label: "Execution time", format: seconds },
  energy: { label: "Energy", format: joules },
  cost: { label: "Cost", format: dollars },
};

const DEFAULT_METRIC: Metric = "turnaround";

export function useMetric(): Metric {
  const selected = useParameter("metric");
  return selected !== null && selected in METRICS ? (selected as Metric) : DEFAULT_METRIC;
}

export function MetricSelect() {
  const metric = useMetric();
  return (
    <Select
      label="Metric"
      value={metric}
      choices={Object.entries(METRICS).map(([value, { label }]) => ({ value, label }))}
      onChoose={(value) => setParameters({ metric: value === DEFAULT_METRIC ? null : value })}
    />
  );
}

export function Trends({ run, spec, everyMs }: { run: string; spec: RunSpec | null; everyMs: number }) {
  const marks = useMemo(() => driftMarks(spec), [spec]);
  const progress = usePolled<Progress>(runPath(run, "/progress", { points: 200 }), everyMs);
  return (
    <>
      <div className="h-96">
        <Totals source={progress} marks={marks} />
      </div>
      <div className="h-96">
        <Regret source={progress} marks={marks} />
      </div>
    </>
  );
}

function Totals({ source, marks }: { source: Polled<Progress>; marks: Mark[] }) {
  const palette = usePalette();
  const metric = useMetric();
  const { label, format } = METRICS[metric];
  const schedulers = source.data?.schedulers;
  const option = useMemo(() => {
    const curves = Object.entries(schedulers ?? {}).map(([name, series]) => ({
      name: labelOf(name),
      colour: palette.colour(name),
      points: totalPoints(series, metric),
    }));
    return lineChart(curves, { palette, format, unit: unitOf(metric, curves), marks });
  }, [schedulers, palette, metric, format, marks]);
  const rows = Object.entries(schedulers ?? {}).map(([name, series]) => ({
    name,
    tasks: series.tasks.at(-1) ?? 0,
    total: totals(series, metric).at(-1) ?? 0,
    failed: series.failed.at(-1) ?? 0,
  }));
  const columns: Column<(typeof rows)[number]>[] = [
    schedulerColumn((row) => row.name),
    numberColumn("tasks", "Tasks"),
    numberColumn("total", `Total ${label.toLowerCase()}`, format),
    failedColumn(),
  ];
  return (
    <Widget
      id="trend-totals"
      title={`Cumulative ${label.toLowerCase()}`}
      caption="The sum over all tasks so far. Flatter is better; a bend is a change of the workload or of a model."
      source={source}
      empty={rows.every((row) => row.tasks === 0) && "No results yet."}
      table={
        <Table
          caption="Totals"
          columns={columns}
          rows={rows}
          rowKey={(row) => row.name}
          rowAttributes={(row) => ({ "data-scheduler": row.name })}
          sort={{ key: "total", descending: false }}
        />
      }
    >
      <Chart option={option} label={`Cumulative ${label.toLowerCase()} of every scheduler`} />
    </Widget>
  );
}

interface RegretRow {
  name: string;
  first: number | null;
  last: number | null;
  worst: number | null;
}

function Regret({ source, marks }: { source: Polled<Progress>; marks: Mark[] }) {
  const palette = usePalette();
  const metric = useMetric();
  const schedulers = source.data?.schedulers;
  const name = schedulers ? referenceOf(schedulers, metric) : null;
  const reference = name === null ? "reference" : labelOf(name);
  const regrets = useMemo(() => {
    const best = name === null ? undefined : schedulers?.[name];
    if (!schedulers || !best) return [];
    return Object.entries(schedulers)
      .filter(([each]) => each !== name)
      .map(([each, series]) => ({ name: each, intervals: regret(series, best, metric, INTERVALS) }));
  }, [schedulers, name, metric]);
  const option = useMemo(() => {
    const curves = regrets.map(({ name, intervals }) => ({
      name: labelOf(name),
      colour: palette.colour(name),
      points: intervals.map(({ tasks, ratio }): [number, number] => [tasks, ratio]),
    }));
    // Queues grow without limit: turnarounds spread over several powers of ten.
    const logarithmic = metric === "turnaround";
    const tick = (ratio: number) => ratioTick(ratio, reference, logarithmic);
    return lineChart(curves, { palette, format: overOracle, tick, level: 1, logarithmic, marks });
  }, [regrets, palette, metric, reference, marks]);
  const rows: RegretRow[] = regrets.map(({ name, intervals }) => ({
    name,
    first: intervals[0]?.ratio ?? null,
    last: intervals.at(-1)?.ratio ?? null,
    worst: intervals.length ? Math.max(...intervals.map(({ ratio }) => ratio)) : null,
  }));
  const label = METRICS[metric].label;
  return (
    <Widget
      id="trend-regret"
      title={`${label} compared with ${reference}`}
      caption={`Each point is one interval of the run. ${regretCaption(metric, name)}`}
      source={source}
      empty={regretEmpty(
        schedulers !== undefined && Object.keys(schedulers).length > 0,
        name !== null,
        regrets.some((each) => each.intervals.length > 0),
      )}
      table={<RegretTable rows={rows} />}
    >
      <Chart option={option} label={`${label} compared with ${reference} in each interval of the run`} />
    </Widget>
  );
}

function regretCaption(metric: Metric, reference: string | null): string {
  if (metric === "turnaround" && reference === ORACLE) {
    return "The Oracle sees no queues, so under load others get below its line.";
  }
  return "A good learner falls to the dotted line, also after a change.";
}

/** Without trailing zeros. */
function ratioTick(ratio: number, reference: string, logarithmic: boolean): string {
  if (logarithmic) return ratio === 1 ? reference : `${ratio < 1 ? ratio : count(ratio)}×`;
  const more = Number(((ratio - 1) * 100).toFixed(2));
  return more === 0 ? reference : `${more > 0 ? "+" : "−"}${Math.abs(more)} %`;
}

function regretEmpty(known: boolean, reference: boolean, any: boolean): string | false {
  if (known && !reference) return "This run has no reference to compare with.";
  return !any && "No results yet.";
}

function RegretTable({ rows }: { rows: RegretRow[] }) {
  const columns: Column<RegretRow>[] = [
    schedulerColumn((row) => row.name),
    numberColumn("first", "First interval", overOracle),
    numberColumn("last", "Last interval", overOracle),
    numberColumn("worst", "Worst interval", overOracle),
  ];
  return (
    <Table
      caption="Regret per interval"
      columns={columns}
      rows={rows}
      rowKey={(row) => row.name}
      rowAttributes={(row) => ({ "data-scheduler": row.name })}
      sort={{ key: "last", descending: false }}
    />
  );
}
