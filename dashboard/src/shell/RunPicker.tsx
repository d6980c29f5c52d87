import type { Run } from "../api/types";
import { useRuns } from "../api/runs";
import { useLive, useRun } from "../live";
import { setParameters, useParameter } from "../url";
import { Select } from "../ui/Select";
import { StateDot } from "./StateDot";

export function runLabel(run: Pick<Run, "run" | "name">): string {
  return run.name ? `${run.name} · ${run.run}` : run.run;
}

/** Which run is on the screen; without a choice, the newest one is followed. */
export function RunPicker() {
  const chosen = useParameter("run");
  const shown = useRun();
  const state = useLive((live) => live.state);
  const runs = useRuns().data ?? [];
  const follow = { value: "", label: shown && !chosen ? `Newest · ${shown}` : "Newest run" };
  const known = runs.map((run) => ({ value: run.run, label: `${runLabel(run)} (${run.state})` }));
  const missing = chosen && !runs.some((run) => run.run === chosen);
  const choices = [follow, ...(missing ? [{ value: chosen, label: chosen }] : []), ...known];
  return (
    <div className="flex min-w-0 items-center gap-2.5">
      <StateDot state={state} />
      <Select
        data-testid="run-picker"
        label="Run on the screen"
        className="max-w-52 max-lg:max-w-full text-[0.8125rem]! font-medium"
        value={chosen ?? ""}
        choices={choices}
        onChoose={(run) => setParameters({ run, task: null, before: null }, false)}
      />
    </div>
  );
}
