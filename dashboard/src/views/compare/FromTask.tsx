import { runPath } from "../../api/client";
import { usePolled } from "../../api/polling";
import type { Comparison, Figures, RunDetail } from "../../api/types";
import { count, dollars, joules, seconds } from "../../format";
import { type Column, schedulerColumn, Table, Widget } from "../../ui";
import { Difference } from "./Averages";

interface Row {
  name: string;
  a: Figures | null;
  b: Figures | null;
  different: number | null;
  first: number | null;
}

/** A fork beside another run, on the tasks that it decided itself. */
export function FromTask({ a, b, everyMs }: { a: RunDetail; b: RunDetail; everyMs: number }) {
  const begins = Math.max(a.fork?.at ?? 0, b.fork?.at ?? 0);
  const source = usePolled<Comparison>(
    runPath(b.run, "/comparison", { other: a.run, first: begins }),
    Math.max(everyMs, 3_000),
  );
  const rows = Object.entries(source.data?.schedulers ?? {}).map(([name, each]) => ({
    name,
    a: each.other,
    b: each.figures,
    different: each.different,
    first: each.first_different,
  }));
  const end = source.data?.end ?? begins;
  const changes = (b.fork ?? a.fork)?.changes ?? [];
  return (
    <Widget
      id="compare-fork"
      title={`From task #${count(begins)} on`}
      caption={`${changes.length ? `Changed: ${changes.join(", ")}. ` : "Nothing was changed. "}${
        end > begins ? `Tasks ${count(begins)} to ${count(end - 1)}, which both runs have.` : ""
      } “Different” counts the tasks that finish at another time.`}
      source={source}
      empty={end === begins && "No task since then has results in both runs yet."}
      scroll
    >
      <Table
        caption="Both runs since the fork"
        columns={COLUMNS}
        rows={rows}
        rowKey={(row) => row.name}
        rowAttributes={(row) => ({ "data-scheduler": row.name })}
      />
    </Widget>
  );
}

type Figure = "avg_turnaround" | "turnaround_p95" | "avg_wait" | "avg_energy" | "avg_cost";

function three(key: Figure, title: string, format: (value: number | null | undefined) => string): Column<Row>[] {
  return [
    side(`${key}_a`, `${title} A`, (row) => row.a?.[key] ?? null, format),
    side(`${key}_b`, `${title} B`, (row) => row.b?.[key] ?? null, format),
    {
      key: `${key}_change`,
      header: `Δ ${title.toLowerCase()}`,
      numeric: true,
      value: (row) => change(row, key),
      show: (row) => <Difference share={change(row, key)} />,
    },
  ];
}

function side(
  key: string,
  header: string,
  of: (row: Row) => number | null,
  format: (value: number | null | undefined) => string,
): Column<Row> {
  return { key, header, numeric: true, value: of, show: (row) => format(of(row)) };
}

function change(row: Row, key: Figure): number | null {
  return row.a && row.b && row.a[key] ? row.b[key] / row.a[key] - 1 : null;
}

const COLUMNS: Column<Row>[] = [
  schedulerColumn((row) => row.name, true),
  ...three("avg_turnaround", "Turnaround", seconds),
  ...three("turnaround_p95", "p95", seconds),
  ...three("avg_wait", "Wait", seconds),
  ...three("avg_energy", "Energy", joules),
  ...three("avg_cost", "Cost", dollars),
  side("different", "Different", (row) => row.different, count),
  side("first", "First different", (row) => row.first, count),
];
