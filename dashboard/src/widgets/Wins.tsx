import type { Analysis } from "../api/types";
import { percent } from "../format";
import { labelOf } from "../schedulers";
import { Matrix, type MatrixCell, SchedulerName, Widget } from "../ui";
import { nothingYet, useAnalysis } from "./subject";

export function Wins() {
  const source = useAnalysis();
  const wins = source.data?.wins;
  return (
    <Widget
      id="wins"
      title="Who beats whom"
      hint="Share of tasks in which the row was faster than the column. Good is a bright row; nobody beats the Oracle."
      source={source}
      empty={nothingYet(source.data)}
      scroll
    >
      {wins && (
        <Matrix
          caption="Share of tasks in which the row was faster than the column"
          rows={wins.names.map((name) => ({ key: name, label: <SchedulerName name={name} /> }))}
          columns={wins.names.map((name) => ({ key: name, label: labelOf(name) }))}
          cell={(row, column) => winCell(wins, row, column)}
        />
      )}
    </Widget>
  );
}

/** Coloured by how much more often the row won than lost, so that ties are nobody's. */
export function winCell(wins: Analysis["wins"], row: number, column: number): MatrixCell | null {
  const won = wins.matrix[row]?.[column] ?? null;
  if (won === null) return null;
  const ties = wins.ties[row]?.[column] ?? 0;
  const lost = wins.matrix[column]?.[row] ?? 0;
  const names = `${labelOf(wins.names[row] ?? "")} against ${labelOf(wins.names[column] ?? "")}`;
  return {
    value: won,
    text: `${Math.round(won * 100)}`,
    title: `${names}: faster in ${percent(won)}, equal in ${percent(ties)}, slower in ${percent(lost)} of tasks`,
    shade: won - lost,
  };
}
