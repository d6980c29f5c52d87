import { useMemo } from "react";
import { runPath } from "../../api/client";
import type { Progress } from "../../api/types";
import { usePolled } from "../../api/usePolled";
import { count } from "../../format";
import { labelOf, ORACLE } from "../../schedulers";
import { type Palette, usePalette } from "../../theme";
import { Chart, type Column, Select, Table, Widget } from "../../ui";
import { setParameters, useParameter } from "../../url";
import { type Line, lines } from "../history/lines";
import { type Metric, totalAt, totalPoints } from "../history/regret";
import { MetricChoice, METRICS, useMetric } from "../history/Trends";

/** One scheduler's running total in both runs, with the Oracle's of each for scale. */
export function Curves({ a, b, names, every }: { a: string; b: string; names: string[]; every: number }) {
  const palette = usePalette();
  const metric = useMetric();
  const { label, format, tick } = METRICS[metric];
  const first = usePolled<Progress>(runPath(a, "/progress", { points: 120 }), every);
  const second = usePolled<Progress>(runPath(b, "/progress", { points: 120 }), every);
  const asked = useParameter("scheduler") ?? "";
  const name = names.includes(asked) ? asked : (names.find((each) => each !== ORACLE) ?? names[0] ?? "");
  const option = useMemo(() => {
    const shown = name === ORACLE ? [ORACLE] : [name, ORACLE];
    const curves = shown.flatMap((each) => pairOf(each, [first.data, second.data], metric, palette));
    return lines(curves, { palette, format, tick });
  }, [first.data, second.data, name, palette, metric, format, tick]);
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
        <MetricChoice />
      </div>
      <div className="h-96">
        <Widget
          id="compare-curves"
          title={`${label}, summed up`}
          hint="Solid is A, dashed is B; flatter is better. The table compares after as many tasks as both have."
          source={first.data ? second : first}
          empty={names.length === 0 && "The runs have no scheduler in common."}
          table={<Totals names={names} a={first.data} b={second.data} metric={metric} />}
        >
          <Chart option={option} label={`Running total of ${label.toLowerCase()} of ${labelOf(name)} in both runs`} />
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
    return [{ label, colour: palette.colour(name), dashed: at === 1, points: totalPoints(series, metric) }];
  });
}

interface Row {
  name: string;
  tasks: number;
  a: number | null;
  b: number | null;
}

/** Totals are comparable only after equally many tasks. */
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
  const total = (key: "a" | "b"): Column<Row> => ({
    key,
    header: `${label} ${key.toUpperCase()}`,
    numeric: true,
    value: (row) => row[key],
    show: (row) => (row[key] === null ? "–" : format(row[key])),
  });
  return (
    <Table
      caption="Totals after equally many tasks"
      columns={[
        { key: "name", header: "Scheduler", value: (row) => labelOf(row.name) },
        { key: "tasks", header: "After tasks", numeric: true, value: (row) => row.tasks, show: (row) => count(row.tasks) },
        total("a"),
        total("b"),
      ]}
      rows={names.map((name) => rowOf(name, a, b, metric))}
      rowKey={(row) => row.name}
      rowAttributes={(row) => ({ "data-scheduler": row.name })}
    />
  );
}
