import type { ReactNode } from "react";

export interface MatrixCell {
  value: number | null;
  text: string;
  /** The whole sentence that the cell stands for. */
  title: string;
  /** −1 … 1: how strongly, and to which side, the cell is coloured. */
  shade: number;
}

export interface MatrixProps {
  caption: string;
  rows: { key: string; label: ReactNode }[];
  columns: { key: string; label: ReactNode }[];
  cell: (row: number, column: number) => MatrixCell | null;
}

const SIDES = { positive: "var(--accent)", negative: "var(--bad)" };

/** A square of coloured numbers. It is a real table, so that it can also be read. */
export function Matrix({ caption, rows, columns, cell }: MatrixProps) {
  return (
    <table className="num h-full w-full table-fixed border-separate border-spacing-[2px] text-[0.75rem]">
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
  // Never so strong that the number on it cannot be read.
  const strength = Math.round(Math.min(1, Math.abs(cell.shade)) * 48);
  const side = cell.shade < 0 ? SIDES.negative : SIDES.positive;
  return (
    <td
      data-column={column}
      data-value={cell.value ?? undefined}
      title={cell.title}
      className="overflow-hidden rounded-[4px] p-0 text-center"
      style={{ background: `color-mix(in oklab, ${side} ${strength}%, var(--sunken))` }}
    >
      {cell.text}
    </td>
  );
}
