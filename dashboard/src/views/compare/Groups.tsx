import { percent } from "../../format";
import { type Column, numberColumn, schedulerColumn, Table, Widget } from "../../ui";
import { METRICS, MetricSelect, useMetric } from "../history/Trends";
import { type Estimate, estimate, type LoadedRun, seedGroups, type TotalsAt } from "./sameTasks";

interface Row {
  name: string;
  /** By group. */
  values: (Estimate | null)[];
  tasks: number;
}

/** All runs, those that differ only in the seed as one, with the interval of their mean. */
export function Groups({ runs, totals }: { runs: LoadedRun[]; totals: Record<string, TotalsAt>[] }) {
  const metric = useMetric();
  const { label, format } = METRICS[metric];
  const groups = seedGroups(runs);
  const names = [...new Set(totals.flatMap((each) => Object.keys(each)))];
  const rows: Row[] = names.map((name) => ({
    name,
    tasks: totals.find((each) => each[name])?.[name]?.tasks ?? 0,
    values: groups.map((members) =>
      estimate(oneOfEachSeed(members, runs).flatMap((at) => totals[at]?.[name]?.[`avg_${metric}`] ?? [])),
    ),
  }));
  const columns: Column<Row>[] = [
    schedulerColumn((row) => row.name, true),
    numberColumn("tasks", "After tasks"),
    ...groups.flatMap((members, group): Column<Row>[] => [
      {
        key: `group_${group}`,
        header: `${letterOf(members)}: ${seedsOf(members, runs)}`,
        numeric: true,
        value: (row) => row.values[group]?.mean ?? null,
        show: (row) => <Interval value={row.values[group] ?? null} format={format} />,
      },
      ...(group === 0 ? [] : [change(group, letterOf(groups[0] ?? []))]),
    ]),
  ];
  return (
    <Widget
      id="compare-groups"
      title={`Mean ${label.toLowerCase()} of ${runs.length} runs`}
      caption="Runs that differ only in their seed are one column: their mean, ± half of its 95 % confidence interval. All after equally many tasks."
      actions={<MetricSelect />}
      scroll
    >
      <Table
        caption={`Mean ${label.toLowerCase()} by group of runs`}
        columns={columns}
        rows={rows}
        rowKey={(row) => row.name}
        rowAttributes={(row) => ({ "data-scheduler": row.name })}
      />
    </Widget>
  );
}

/** The same seed again is no further evidence. */
function oneOfEachSeed(members: number[], runs: LoadedRun[]): number[] {
  const seed = (at: number) => runs[at]?.detail.spec.seed;
  return members.filter((at, place) => members.findIndex((other) => seed(other) === seed(at)) === place);
}

/** The letters of a group's runs: A, or A C D. */
function letterOf(members: number[]): string {
  return members.map((at) => String.fromCharCode(65 + at)).join(" ");
}

function seedsOf(members: number[], runs: LoadedRun[]): string {
  const seeds = members.map((at) => runs[at]?.detail.spec.seed);
  return seeds.length === 1 ? `seed ${seeds[0]}` : `seeds ${seeds.join(", ")}`;
}

function Interval({ value, format }: { value: Estimate | null; format: (value: number) => string }) {
  if (!value) return <span className="text-faint">–</span>;
  return (
    <>
      {format(value.mean)}
      {value.half !== null && <span className="text-muted"> ± {format(value.half)}</span>}
    </>
  );
}

/** A change whose intervals overlap may be chance. */
function change(group: number, reference: string): Column<Row> {
  const share = (row: Row) => {
    const [first, own] = [row.values[0], row.values[group]];
    return first && own && first.mean > 0 ? own.mean / first.mean - 1 : null;
  };
  return {
    key: `change_${group}`,
    header: `Δ to ${reference}`,
    numeric: true,
    value: share,
    show: (row) => {
      const value = share(row);
      if (value === null) return <span className="text-faint">–</span>;
      const [first, own] = [row.values[0], row.values[group]];
      const apart = first && own && Math.abs(first.mean - own.mean) > (first.half ?? 0) + (own.half ?? 0);
      const tone = !apart ? "text-muted" : value < 0 ? "text-good" : "text-bad";
      return (
        <span className={tone} title={apart ? undefined : "The intervals overlap: it may be chance"}>
          {value > 0 ? "+" : ""}
          {percent(value)}
          {!apart && " ?"}
        </span>
      );
    },
  };
}
