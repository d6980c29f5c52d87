import type { Analysis } from "../api/types";
import { percent } from "../format";
import { RACE_MEASURES, type RaceMeasure, useRaceMeasure } from "../raceMeasure";
import { labelOf } from "../schedulers";
import { Matrix, type MatrixCell, SchedulerName, Widget } from "../ui";
import type { ArenaWidget } from "./layout";
import { RaceMeasureSelect } from "./RaceMeasureSelect";
import { noTasksYet, useAnalysis } from "./selection";

const HEADINGS: Record<RaceMeasure, { title: string; caption: string }> = {
  turnaround: {
    title: "Tasks won by turnaround",
    caption: "Percentage of tasks that the row had finished sooner after their arrival than the column.",
  },
  time: {
    title: "Tasks won by execution time",
    caption:
      "Percentage of tasks that the row executed faster than the column. No scheduler is faster than the Oracle.",
  },
};

export const winMatrix: ArenaWidget = {
  id: "wins",
  ...HEADINGS.turnaround,
  component: WinMatrix,
  sizes: { wall: [4, 10], wide: [4, 9], medium: [3, 9] },
};

export function WinMatrix() {
  const source = useAnalysis();
  const wins = source.data?.wins;
  const measure = useRaceMeasure();
  const heading = HEADINGS[wins?.by ?? measure];
  return (
    <Widget
      {...winMatrix}
      {...heading}
      source={source}
      empty={noTasksYet(source.data)}
      actions={<RaceMeasureSelect testId="wins-by" />}
      scroll
    >
      {wins && (
        <Matrix
          caption={heading.caption}
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
    title: `${names}, ${RACE_MEASURES[wins.by]}: shorter in ${percent(won)}, equal in ${percent(ties)}, longer in ${percent(lost)} of tasks`,
    shade: won - lost,
  };
}
