import { useMemo } from "react";
import { runPath } from "../../api/client";
import type { Progress } from "../../api/types";
import { usePolled } from "../../api/usePolled";
import { count } from "../../format";
import { labelOf, ORACLE } from "../../schedulers";
import { usePalette } from "../../theme";
import { Chart, type Column, Select, Table, Widget } from "../../ui";
import { setParameters, useParameter } from "../../url";
import { type Line, lines } from "../history/lines";
import { totalAt, totalPoints } from "../history/regret";
import { MetricChoice, METRICS, useMetric } from "../history/Trends";

interface Row {
  name: string;
  tasks: number;
  a: number | null;
  b: number | null;
}

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
    const curves = shown.flatMap((each): Line[] =>
      [first.data, second.data].flatMap((progress, at) => {
        const series = progress?.schedulers[each];
        if (!series) return [];
        return [
          {
            label: `${labelOf(each)} ${at === 0 ? "A" : "B"}`,
            colour: palette.colour(each),
            dashed: at === 1,
            points: totalPoints(series, metric),
          },
        ];
      }),
    );
    return lines(curves, { palette, format, tick });
  }, [first.data, second.data, name, palette, metric, format, tick]);
  const rows = names.map((each): Row => {
    const [left, right] = [first.data?.schedulers[each], second.data?.schedulers[each]];
    const tasks = Math.min(left?.tasks.at(-1) ?? 0, right?.tasks.at(-1) ?? 0);
    return {
      name: each,
      tasks,
      a: (left && totalAt(left, metric, tasks)) ?? null,
      b: (right && totalAt(right, metric, tasks)) ?? null,
    };
  });
  const columns: Column<Row>[] = [
    { key: "name", header: "Scheduler", value: (row) => labelOf(row.name) },
    { key: "tasks", header: "After tasks", numeric: true, value: (row) => row.tasks, show: (row) => count(row.tasks) },
    { key: "a", header: `${label} A`, numeric: true, value: (row) => row.a, show: (row) => (row.a === null ? "–" : format(row.a)) },
    { key: "b", header: `${label} B`, numeric: true, value: (row) => row.b, show: (row) => (row.b === null ? "–" : format(row.b)) },
  ];
  return (
    <Widget
      id="compare-curves"
      title={`${label}, summed up`}
      hint="Solid is A, dashed is B. Where the curves part, the runs did; the flatter one was cheaper. The table compares after as many tasks as both have."
      source={first.error && !first.data ? first : second}
      empty={names.length === 0 && "The runs have no scheduler in common."}
      actions={
        <>
          <Select
            label="Scheduler"
            value={name}
            choices={names.map((each) => ({ value: each, label: labelOf(each) }))}
            onChoose={(value) => setParameters({ scheduler: value })}
          />
          <MetricChoice />
        </>
      }
      table={<Table caption="Totals after equally many tasks" columns={columns} rows={rows} rowKey={(row) => row.name} rowAttributes={(row) => ({ "data-scheduler": row.name })} />}
    >
      <Chart option={option} label={`Running total of ${label.toLowerCase()} of ${labelOf(name)} in both runs`} />
    </Widget>
  );
}
