import { RACE_MEASURES, setRaceMeasure, useRaceMeasure } from "../raceMeasure";
import { Select } from "../ui";

/** Switches the race and the win matrix between turnaround and execution time. */
export function RaceMeasureSelect({ testId }: { testId: string }) {
  const measure = useRaceMeasure();
  return (
    <Select
      label="Compare by"
      data-testid={testId}
      value={measure}
      choices={Object.entries(RACE_MEASURES).map(([value, label]) => ({ value, label: `By ${label}` }))}
      onChoose={setRaceMeasure}
    />
  );
}
