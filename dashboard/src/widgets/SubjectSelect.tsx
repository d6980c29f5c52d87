import { useSchedulers } from "../live";
import { labelOf } from "../schedulers";
import { Select } from "../ui";
import { setParameters } from "../url";
import { useSubject } from "./subject";

/** Chooses the scheduler that utilisation, heat map, scatter and correlation look into. */
export function SubjectSelect() {
  const subject = useSubject();
  const names = useSchedulers();
  return (
    <Select
      label="Scheduler"
      value={subject ?? ""}
      choices={names.map((name) => ({ value: name, label: labelOf(name) }))}
      onChoose={(scheduler) => setParameters({ scheduler })}
    />
  );
}
