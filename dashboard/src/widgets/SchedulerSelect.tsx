import { useSchedulers } from "../live";
import { labelOf } from "../schedulers";
import { Select } from "../ui";
import { setParameters } from "../url";
import { useSelectedScheduler } from "./selection";

/** Selects the scheduler of the utilisation, heat map, scatter plot and correlation. */
export function SchedulerSelect() {
  const selected = useSelectedScheduler();
  const names = useSchedulers();
  return (
    <Select
      label="Scheduler"
      value={selected ?? ""}
      choices={names.map((name) => ({ value: name, label: labelOf(name) }))}
      onChoose={(scheduler) => setParameters({ scheduler })}
    />
  );
}
