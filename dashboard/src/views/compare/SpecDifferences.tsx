import type { Polled } from "../../api/polling";
import type { RunDetail } from "../../api/types";
import { type Column, Table, Widget } from "../../ui";
import { type SpecDifference, specDifferences } from "./differences";

export function SpecDifferences({
  source,
  a,
  b,
}: {
  source: Polled<unknown>;
  a: RunDetail | null;
  b: RunDetail | null;
}) {
  const rows = a && b ? specDifferences(a.spec, b.spec).filter(({ path }) => path !== "name") : [];
  return (
    <Widget
      id="compare-specs"
      title="Differences of the specs"
      caption="Only the fields that differ. With one difference, its effect is clear."
      source={source}
      empty={
        a !== null &&
        b !== null &&
        rows.length === 0 &&
        "None: both runs have the same spec and seed, so schedulers with fixed rules give equal results."
      }
      scroll
    >
      <Table
        caption="Differences of the specs"
        columns={COLUMNS}
        rows={rows}
        rowKey={(row) => row.path}
        sortable={false}
      />
    </Widget>
  );
}

const COLUMNS: Column<SpecDifference>[] = [
  {
    key: "path",
    header: "Field",
    value: (row) => row.path,
    show: (row) => <code className="font-mono text-xs">{row.path}</code>,
  },
  { key: "a", header: "A", value: (row) => textOf(row.a), show: (row) => <Value value={row.a} /> },
  { key: "b", header: "B", value: (row) => textOf(row.b), show: (row) => <Value value={row.b} /> },
];

function textOf(value: unknown): string {
  if (value === undefined) return "–";
  if (value === null) return "none";
  if (Array.isArray(value) && value.every((each) => typeof each !== "object")) return value.join(", ") || "none";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function Value({ value }: { value: unknown }) {
  return <span className="block max-w-80 min-w-24 whitespace-normal">{textOf(value)}</span>;
}
