import type { ReactNode } from "react";

export interface MatrixCell {
  value: number | null;
  text: string;
  /** The tooltip. */
  title: string;
  /** −1 … 1: the strength of the colour; its sign chooses the colour. */
  shade: number;
}

export interface MatrixProps {
  caption: string;
  rows: { key: string; label: ReactNode }[];
  columns: { key: string; label: ReactNode }[];
  cell: (row: number, column: number) => MatrixCell | null;
}

const COLOUR = { positive: "var(--accent)", negative: "var(--bad)" };

/** Columns that have room for text of the usual size. */
const MOST_WIDE = 12;

/** Coloured numbers in a table that a screen reader can read. */
export function Matrix({ caption, rows, columns, cell }: MatrixProps) {
  const dense = columns.length > MOST_WIDE;
  const shape = dense
    ? "border-spacing-px text-[0.625rem] leading-3 tracking-tighter"
    : "border-spacing-[2px] text-[0.75rem]";
  return (
    <table className={`num h-full w-full table-fixed border-separate ${shape}`}>
      <caption className="sr-only">{caption}</caption>
      <colgroup>
        <col className="w-[27%]" />
      </colgroup>
      <tbody>
        {rows.map((row, at) => (
          <tr key={row.key} data-row={row.key}>
            <th scope="row" className="truncate pr-1 text-left font-normal text-muted">
              {row.label}
            </th>
            {columns.map((column, across) => (
              <Cell key={column.key} column={column.key} cell={cell(at, across)} />
            ))}
          </tr>
        ))}
      </tbody>
      <tfoot>
        <tr>
          <td />
          {columns.map((column) => (
            <th key={column.key} scope="col" className="h-20 p-0 align-top font-normal text-muted">
              <span className="mx-auto block max-h-20 truncate pt-1 [writing-mode:vertical-rl]">{column.label}</span>
            </th>
          ))}
        </tr>
      </tfoot>
    </table>
  );
}

function Cell({ column, cell }: { column: string; cell: MatrixCell | null }) {
  if (!cell) return <td className="rounded-[4px] bg-sunken" />;
  // At most 48 %: the number has to stay readable.
  const strength = Math.round(Math.min(1, Math.abs(cell.shade)) * 48);
  const colour = cell.shade < 0 ? COLOUR.negative : COLOUR.positive;
  return (
    <td
      data-column={column}
      data-value={cell.value ?? undefined}
      title={cell.title}
      className="overflow-hidden rounded-[4px] p-0 text-center"
      style={{ background: `color-mix(in oklab, ${colour} ${strength}%, var(--sunken))` }}
    >
      {cell.text}
    </td>
  );
}
