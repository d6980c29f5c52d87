import type { RunDetail } from "../../api/types";
import type { Polled } from "../../api/usePolled";
import { type Column, Table, Widget } from "../../ui";
import { type SpecDifference, specDifferences } from "./differences";

export function SpecDifferences({ source, a, b }: { source: Polled<unknown>; a: RunDetail | null; b: RunDetail | null }) {
  const rows = a && b ? specDifferences(a.spec, b.spec).filter(({ path }) => path !== "name") : [];
  return (
    <Widget
      id="compare-specs"
      title="What was different"
      hint="Fields of the specs that differ. The fewer, the surer you can be of what made the difference below."
      source={source}
      empty={a !== null && b !== null && rows.length === 0 && "Nothing: both runs have the same spec and seed, so fixed rules must agree to the digit."}
      scroll
    >
      <Table caption="Differences of the specs" columns={COLUMNS} rows={rows} rowKey={(row) => row.path} sortable={false} />
    </Widget>
  );
}

const COLUMNS: Column<SpecDifference>[] = [
  { key: "path", header: "Field", value: (row) => row.path, show: (row) => <code className="font-mono text-xs">{row.path}</code> },
  { key: "a", header: "A", value: (row) => shown(row.a), show: (row) => <Value value={row.a} /> },
  { key: "b", header: "B", value: (row) => shown(row.b), show: (row) => <Value value={row.b} /> },
];

function shown(value: unknown): string {
  if (value === undefined) return "–";
  if (value === null) return "none";
  if (Array.isArray(value) && value.every((each) => typeof each !== "object")) return value.join(", ") || "none";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function Value({ value }: { value: unknown }) {
  return <span className="block max-w-80 min-w-24 whitespace-normal">{shown(value)}</span>;
}
