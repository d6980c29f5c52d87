import { runLabelWithId, useRuns } from "../api/runs";
import { useLive, useRun } from "../live";
import { Select } from "../ui/Select";
import { setParameters, useParameter } from "../url";
import { StateDot } from "./StateDot";

/** The run on the screen; without a selection, always the newest one. */
export function RunPicker() {
  const selected = useParameter("run");
  const shown = useRun();
  const state = useLive((live) => live.state);
  const runs = useRuns().data ?? [];
  const newest = { value: "", label: shown && !selected ? `Newest · ${shown}` : "Newest run" };
  const known = runs.map((run) => ({ value: run.run, label: `${runLabelWithId(run)} (${run.state})` }));
  const missing = selected && !runs.some((run) => run.run === selected);
  const choices = [newest, ...(missing ? [{ value: selected, label: selected }] : []), ...known];
  return (
    <div className="flex min-w-0 items-center gap-2.5">
      <StateDot state={state} />
      <Select
        data-testid="run-picker"
        label="Run on the screen"
        className="max-w-52 xl:max-w-80 max-lg:max-w-full text-[0.8125rem]! font-medium"
        value={selected ?? ""}
        choices={choices}
        onChoose={(run) => setParameters({ run, task: null, before: null }, false)}
      />
    </div>
  );
}
