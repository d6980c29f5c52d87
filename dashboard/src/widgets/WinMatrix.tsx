import type { Analysis } from "../api/types";
import { percent } from "../format";
import { labelOf } from "../schedulers";
import { Matrix, type MatrixCell, SchedulerName, Widget } from "../ui";
import type { ArenaWidget } from "./layout";
import { noTasksYet, useAnalysis } from "./selection";

export const winMatrix: ArenaWidget = {
  id: "wins",
  title: "Faster in how many tasks",
  caption: "Percentage of tasks in which the row was faster than the column. No scheduler is faster than the Oracle.",
  component: WinMatrix,
  sizes: { wall: [4, 10], wide: [4, 9], medium: [3, 9] },
};

export function WinMatrix() {
  const source = useAnalysis();
  const wins = source.data?.wins;
  return (
    <Widget {...winMatrix} source={source} empty={noTasksYet(source.data)} scroll>
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

/** Coloured by wins minus losses, so that ties count for neither. */
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
