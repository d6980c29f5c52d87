import { ArrowDown, ArrowUp } from "lucide-react";
import { type ReactNode, useMemo, useState } from "react";
import { count } from "../format";

export interface Column<Row> {
  key: string;
  header: string;
  /** The value to sort by; `data-value` has it unrounded. */
  value: (row: Row) => number | string | null;
  /** What the cell shows; the value by default. */
  show?: (row: Row) => ReactNode;
  numeric?: boolean;
  /** For sentences: they break where the window is narrow. */
  sentence?: boolean;
  /** The tooltip of the header. */
  hint?: string;
}

type NumberKey<Row> = {
  [Key in keyof Row & string]: Row[Key] extends number | null | undefined ? Key : never;
}[keyof Row & string];

export function numberColumn<Row>(
  key: NumberKey<Row>,
  header: string,
  format: (value: number | null) => ReactNode = count,
  hint?: string,
): Column<Row> {
  const value = (row: Row) => (row[key] as number | null | undefined) ?? null;
  return { key, header, numeric: true, value, show: (row) => format(value(row)), ...(hint && { hint }) };
}

export interface Sorting {
  key: string;
  descending: boolean;
}

export interface TableProps<Row> {
  caption: string;
  columns: Column<Row>[];
  rows: Row[];
  /** The position, where all rows change at once: React then reuses the cells. */
  rowKey: (row: Row, position: number) => string;
  rowAttributes?: (row: Row) => Record<string, string>;
  sort?: Sorting;
  /** Where the rows are one page of many: sorts all of them, instead of those here. */
  onSort?: (sorting: Sorting) => void;
  /** Off where the order has a meaning. */
  sortable?: boolean;
  empty?: string;
}

/** A click on a header sorts; empty values always come last. */
export function Table<Row>({
  caption,
  columns,
  rows,
  rowKey,
  rowAttributes,
  sort,
  onSort,
  sortable = true,
  empty = "No rows yet.",
}: TableProps<Row>) {
  const [own, setOwn] = useState<Sorting | null>(sort ?? null);
  const sorting = onSort ? (sort ?? null) : own;
  const sorted = useMemo(() => (onSort ? rows : sortRows(rows, columns, sorting)), [rows, columns, sorting, onSort]);
  const sortBy = (key: string) =>
    (onSort ?? setOwn)({ key, descending: sorting?.key === key ? !sorting.descending : false });
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
              aria-sort={sorting?.key === column.key ? (sorting.descending ? "descending" : "ascending") : undefined}
              className={`sticky top-0 z-1 border-b border-line bg-raised px-2.5 py-1.5 text-xs font-medium text-muted ${column.numeric ? "text-right" : "text-left"}`}
            >
              {sortable ? (
                <button
                  type="button"
                  className={`inline-flex items-center gap-1 whitespace-nowrap hover:text-ink ${column.numeric ? "flex-row-reverse" : ""}`}
                  onClick={() => sortBy(column.key)}
                >
                  {column.header}
                  <SortArrow sorting={sorting} column={column.key} />
                </button>
              ) : (
                column.header
              )}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {sorted.map((row, position) => (
          <tr key={rowKey(row, position)} className="hover:bg-sunken" {...rowAttributes?.(row)}>
            {columns.map((column) => {
              const value = column.value(row);
              return (
                <td
                  key={column.key}
                  data-field={column.key}
                  data-value={column.numeric && value !== null ? String(value) : undefined}
                  className={`border-b border-line px-2.5 py-1.5 ${column.sentence ? "min-w-36" : "whitespace-nowrap"} ${column.numeric ? "text-right" : "text-left"}`}
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

function SortArrow({ sorting, column }: { sorting: Sorting | null; column: string }) {
  if (sorting?.key !== column) return <span aria-hidden className="size-3" />;
  const Arrow = sorting.descending ? ArrowDown : ArrowUp;
  return <Arrow aria-hidden className="size-3 text-accent" />;
}

export function sortRows<Row>(rows: Row[], columns: Column<Row>[], sorting: Sorting | null): Row[] {
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
