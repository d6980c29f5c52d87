import { useMemo } from "react";
import { runPath } from "../../api/client";
import { usePolled } from "../../api/polling";
import { type Metric, totalAt, totalPoints } from "../../api/progress";
import type { Progress } from "../../api/types";
import { labelOf, ORACLE } from "../../schedulers";
import { type Palette, usePalette } from "../../theme";
import { Chart, type Column, numberColumn, Select, schedulerColumn, Table, Widget } from "../../ui";
import { curvesCsv } from "../../ui/exporting";
import { setParameters, useParameter } from "../../url";
import { type Line, lineChart, unitOf } from "../history/lineChart";
import { METRICS, MetricSelect, useMetric } from "../history/Trends";

/** The cumulative total of one scheduler and of the Oracle in both runs. */
export function Curves({ a, b, names, everyMs }: { a: string; b: string; names: string[]; everyMs: number }) {
  const palette = usePalette();
  const metric = useMetric();
  const { label, format } = METRICS[metric];
  const first = usePolled<Progress>(runPath(a, "/progress", { points: 200 }), everyMs);
  const second = usePolled<Progress>(runPath(b, "/progress", { points: 200 }), everyMs);
  const selected = useParameter("scheduler") ?? "";
  const name = names.includes(selected) ? selected : (names.find((each) => each !== ORACLE) ?? names[0] ?? "");
  const curves = useMemo(() => {
    const shown = name === ORACLE ? [ORACLE] : [name, ORACLE];
    return shown.flatMap((each) => pairOf(each, [first.data, second.data], metric, palette));
  }, [first.data, second.data, name, palette, metric]);
  const option = useMemo(
    () => lineChart(curves, { palette, format, unit: unitOf(metric, curves) }),
    [curves, palette, format, metric],
  );
  return (
    <div className="flex flex-col gap-3">
      <div className="flex flex-wrap gap-2">
        <Select
          label="Scheduler"
          visibleLabel
          value={name}
          choices={names.map((each) => ({ value: each, label: labelOf(each) }))}
          onChoose={(value) => setParameters({ scheduler: value })}
        />
        <MetricSelect />
      </div>
      <div className="h-96">
        <Widget
          id="compare-curves"
          title={`Cumulative ${label.toLowerCase()}`}
          caption="Solid is A, dashed is B; flatter is better. The table compares both runs after equally many tasks."
          source={first.data ? second : first}
          empty={names.length === 0 && "The runs have no common scheduler."}
          csv={() => curvesCsv(`total_${metric}`, curves)}
          table={<Totals names={names} a={first.data} b={second.data} metric={metric} />}
        >
          <Chart option={option} label={`Cumulative ${label.toLowerCase()} of ${labelOf(name)} in both runs`} />
        </Widget>
      </div>
    </div>
  );
}

function pairOf(name: string, runs: (Progress | null)[], metric: Metric, palette: Palette): Line[] {
  return runs.flatMap((run, at) => {
    const series = run?.schedulers[name];
    if (!series) return [];
    const label = `${labelOf(name)} ${at === 0 ? "A" : "B"}`;
    return [{ name: label, colour: palette.colour(name), dashed: at === 1, points: totalPoints(series, metric) }];
  });
}

interface Row {
  name: string;
  tasks: number;
  a: number | null;
  b: number | null;
}

/** After as many tasks as both runs have. */
function rowOf(name: string, a: Progress | null, b: Progress | null, metric: Metric): Row {
  const [left, right] = [a?.schedulers[name], b?.schedulers[name]];
  const tasks = Math.min(left?.tasks.at(-1) ?? 0, right?.tasks.at(-1) ?? 0);
  return {
    name,
    tasks,
    a: (left && totalAt(left, metric, tasks)) ?? null,
    b: (right && totalAt(right, metric, tasks)) ?? null,
  };
}

function Totals({ names, a, b, metric }: { names: string[]; a: Progress | null; b: Progress | null; metric: Metric }) {
  const { label, format } = METRICS[metric];
  const columns: Column<Row>[] = [
    schedulerColumn((row) => row.name, true),
    numberColumn("tasks", "After tasks"),
    numberColumn("a", `${label} A`, format),
    numberColumn("b", `${label} B`, format),
  ];
  return (
    <Table
      caption="Totals after equally many tasks"
      columns={columns}
      rows={names.map((name) => rowOf(name, a, b, metric))}
      rowKey={(row) => row.name}
      rowAttributes={(row) => ({ "data-scheduler": row.name })}
    />
  );
}
