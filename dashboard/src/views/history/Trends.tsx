import { useMemo } from "react";
import { runPath } from "../../api/client";
import type { Progress } from "../../api/types";
import { type Polled, usePolled } from "../../api/usePolled";
import { count, dollars, joules, overOracle, seconds, shortCount } from "../../format";
import { labelOf, ORACLE } from "../../schedulers";
import { usePalette } from "../../theme";
import { Chart, type Column, SchedulerName, Select, Table, Widget } from "../../ui";
import { setParameters, useParameter } from "../../url";
import { lines } from "./lines";
import { type Metric, regret, totalPoints, totals } from "./regret";

const STRETCHES = 40;

interface MetricLook {
  label: string;
  format: (value: number) => string;
  tick: (value: number) => string;
}

export const METRICS: Record<Metric, MetricLook> = {
  // Round numbers of seconds stay round on an axis; 1,000 s is a better tick than 16 min 40 s.
  time: { label: "Execution time", format: seconds, tick: (value) => (value < 10 ? seconds(value) : `${shortCount(value)} s`) },
  energy: { label: "Energy", format: joules, tick: joules },
  cost: { label: "Cost", format: dollars, tick: dollars },
};

export function useMetric(): Metric {
  const asked = useParameter("metric");
  return asked === "energy" || asked === "cost" ? asked : "time";
}

export function MetricChoice() {
  const metric = useMetric();
  return (
    <Select
      label="Metric"
      value={metric}
      choices={Object.entries(METRICS).map(([value, { label }]) => ({ value, label }))}
      onChoose={(value) => setParameters({ metric: value === "time" ? null : value })}
    />
  );
}

export function Trends({ run, every }: { run: string; every: number }) {
  const progress = usePolled<Progress>(runPath(run, "/progress", { points: 120 }), every);
  return (
    <>
      <div className="h-96">
        <Totals source={progress} />
      </div>
      <div className="h-96">
        <MovingRegret source={progress} />
      </div>
    </>
  );
}

function Totals({ source }: { source: Polled<Progress> }) {
  const palette = usePalette();
  const metric = useMetric();
  const { label, format, tick } = METRICS[metric];
  const schedulers = source.data?.schedulers;
  const option = useMemo(() => {
    const curves = Object.entries(schedulers ?? {}).map(([name, series]) => ({
      label: labelOf(name),
      colour: palette.colour(name),
      points: totalPoints(series, metric),
    }));
    return lines(curves, { palette, format, tick });
  }, [schedulers, palette, metric, format, tick]);
  const rows = Object.entries(schedulers ?? {}).map(([name, series]) => ({
    name,
    tasks: series.tasks.at(-1) ?? 0,
    total: totals(series, metric).at(-1) ?? 0,
  }));
  const columns: Column<(typeof rows)[number]>[] = [
    { key: "name", header: "Scheduler", value: (row) => row.name, show: (row) => <SchedulerName name={row.name} /> },
    { key: "tasks", header: "Tasks", numeric: true, value: (row) => row.tasks, show: (row) => count(row.tasks) },
    { key: `total_${metric}`, header: `Total ${label.toLowerCase()}`, numeric: true, value: (row) => row.total, show: (row) => format(row.total) },
  ];
  return (
    <Widget
      id="trend-totals"
      title={`${label}, summed up`}
      hint="What all tasks so far have cost each scheduler. Flatter is better; a bend is a change of the workload or of a model."
      source={source}
      empty={rows.every((row) => row.tasks === 0) && "No results yet."}
      table={
        <Table
          caption="Totals"
          columns={columns}
          rows={rows}
          rowKey={(row) => row.name}
          rowAttributes={(row) => ({ "data-scheduler": row.name })}
          sort={{ key: `total_${metric}`, descending: false }}
        />
      }
    >
      <Chart option={option} label={`Running total of ${label.toLowerCase()} of every scheduler`} />
    </Widget>
  );
}

interface RegretRow {
  name: string;
  first: number | null;
  last: number | null;
  worst: number | null;
}

function MovingRegret({ source }: { source: Polled<Progress> }) {
  const palette = usePalette();
  const metric = useMetric();
  const schedulers = source.data?.schedulers;
  const found = useMemo(() => {
    const oracle = schedulers?.[ORACLE];
    if (!schedulers || !oracle) return [];
    return Object.entries(schedulers)
      .filter(([name]) => name !== ORACLE)
      .map(([name, series]) => ({ name, stretches: regret(series, oracle, metric, STRETCHES) }));
  }, [schedulers, metric]);
  const option = useMemo(() => {
    const curves = found.map(({ name, stretches }) => ({
      label: labelOf(name),
      colour: palette.colour(name),
      points: stretches.map(({ tasks, ratio }): [number, number] => [tasks, ratio]),
    }));
    return lines(curves, { palette, format: overOracle, tick: overOracleTick, level: { value: 1, label: "" } });
  }, [found, palette]);
  const rows: RegretRow[] = found.map(({ name, stretches }) => ({
    name,
    first: stretches[0]?.ratio ?? null,
    last: stretches.at(-1)?.ratio ?? null,
    worst: stretches.length ? Math.max(...stretches.map(({ ratio }) => ratio)) : null,
  }));
  const known = schedulers !== undefined && Object.keys(schedulers).length > 0;
  return (
    <Widget
      id="trend-regret"
      title="Distance to the Oracle, stretch by stretch"
      hint="Each point is one stretch of tasks, not the total. A good learner falls to the Oracle's line, and returns to it after a change."
      source={source}
      empty={regretEmpty(known, known && ORACLE in (schedulers ?? {}), found.some((each) => each.stretches.length > 0))}
      table={<RegretTable rows={rows} />}
    >
      <Chart option={option} label={`${METRICS[metric].label} over the Oracle's in each stretch of the run`} />
    </Widget>
  );
}

/** Round steps want no more digits than they have. */
function overOracleTick(ratio: number): string {
  const more = Number(((ratio - 1) * 100).toFixed(2));
  return more === 0 ? "Oracle" : `${more > 0 ? "+" : "−"}${Math.abs(more)} %`;
}

function regretEmpty(known: boolean, oracle: boolean, any: boolean): string | false {
  if (known && !oracle) return "The Oracle does not compete in this run, so there is nothing to measure by.";
  return !any && "No results yet.";
}

function RegretTable({ rows }: { rows: RegretRow[] }) {
  const ratio = (key: "first" | "last" | "worst", header: string): Column<RegretRow> => ({
    key,
    header,
    numeric: true,
    value: (row) => row[key],
    show: (row) => overOracle(row[key]),
  });
  return (
    <Table
      caption="Distance to the Oracle per stretch"
      columns={[
        { key: "name", header: "Scheduler", value: (row) => row.name, show: (row) => <SchedulerName name={row.name} /> },
        ratio("first", "First stretch"),
        ratio("last", "Last stretch"),
        ratio("worst", "Worst stretch"),
      ]}
      rows={rows}
      rowKey={(row) => row.name}
      rowAttributes={(row) => ({ "data-scheduler": row.name })}
      sort={{ key: "last", descending: false }}
    />
  );
}
