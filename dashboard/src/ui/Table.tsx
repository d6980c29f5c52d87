import { ArrowDown, ArrowUp } from "lucide-react";
import { type ReactNode, useMemo, useState } from "react";

export interface Column<Row> {
  key: string;
  header: string;
  /** What is sorted by, and what `data-value` holds, unrounded. */
  value: (row: Row) => number | string | null;
  /** What is shown; the plain value by default. */
  show?: (row: Row) => ReactNode;
  /** Numbers stand right-aligned. */
  numeric?: boolean;
  /** What the column means, as a tooltip of its header. */
  hint?: string;
}

export interface Sorting {
  key: string;
  descending: boolean;
}

export interface TableProps<Row> {
  caption: string;
  columns: Column<Row>[];
  rows: Row[];
  /** By place, where all rows change at once: cells are then refilled and not rebuilt. */
  rowKey: (row: Row, place: number) => string;
  rowAttributes?: (row: Row) => Record<string, string>;
  sort?: Sorting;
  /** Off for tables whose order is the message. */
  sortable?: boolean;
  empty?: string;
}

/** A table that sorts by its headers; empty values always come last. */
export function Table<Row>({
  caption,
  columns,
  rows,
  rowKey,
  rowAttributes,
  sort,
  sortable = true,
  empty = "Nothing here yet.",
}: TableProps<Row>) {
  const [sorting, setSorting] = useState<Sorting | null>(sort ?? null);
  const sorted = useMemo(() => inOrder(rows, columns, sorting), [rows, columns, sorting]);
  const turn = (key: string) =>
    setSorting((now) => ({ key, descending: now?.key === key ? !now.descending : false }));
  return (
    <table className="num w-full border-separate border-spacing-0 text-[0.8125rem]">
      <caption className="sr-only">{caption}</caption>
      <thead>
        <tr>
          {columns.map((column) => (
            <th
              key={column.key}
              scope="col"
              title={column.hint}
              aria-sort={
                sorting?.key === column.key ? (sorting.descending ? "descending" : "ascending") : undefined
              }
              className={`sticky top-0 z-1 border-b border-line bg-raised px-2.5 py-1.5 text-xs font-medium text-muted ${column.numeric ? "text-right" : "text-left"}`}
            >
              {sortable ? (
                <button
                  type="button"
                  className={`inline-flex items-center gap-1 whitespace-nowrap hover:text-ink ${column.numeric ? "flex-row-reverse" : ""}`}
                  onClick={() => turn(column.key)}
                >
                  {column.header}
                  <SortMark sorting={sorting} column={column.key} />
                </button>
              ) : (
                column.header
              )}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {sorted.map((row, place) => (
          <tr key={rowKey(row, place)} className="hover:bg-sunken" {...rowAttributes?.(row)}>
            {columns.map((column) => {
              const value = column.value(row);
              return (
                <td
                  key={column.key}
                  data-field={column.key}
                  data-value={column.numeric && value !== null ? String(value) : undefined}
                  className={`border-b border-line px-2.5 py-1.5 whitespace-nowrap ${column.numeric ? "text-right" : "text-left"}`}
                >
                  {column.show ? column.show(row) : (value ?? "–")}
                </td>
              );
            })}
          </tr>
        ))}
        {sorted.length === 0 && (
          <tr>
            <td colSpan={columns.length} className="px-2.5 py-6 text-center text-muted">
              {empty}
            </td>
          </tr>
        )}
      </tbody>
    </table>
  );
}

function SortMark({ sorting, column }: { sorting: Sorting | null; column: string }) {
  if (sorting?.key !== column) return <span aria-hidden className="size-3" />;
  const Mark = sorting.descending ? ArrowDown : ArrowUp;
  return <Mark aria-hidden className="size-3 text-accent" />;
}

export function inOrder<Row>(rows: Row[], columns: Column<Row>[], sorting: Sorting | null): Row[] {
  const column = sorting && columns.find((each) => each.key === sorting.key);
  if (!column) return rows;
  const direction = sorting.descending ? -1 : 1;
  return [...rows].sort((left, right) => {
    const a = column.value(left);
    const b = column.value(right);
    if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
    if (typeof a === "number" && typeof b === "number") return (a - b) * direction;
    return String(a).localeCompare(String(b)) * direction;
  });
}
