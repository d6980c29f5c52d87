import type { SchedulerInfo } from "../../api/types";
import { usePolled } from "../../api/usePolled";
import { SchedulerName, Widget } from "../../ui";
import { chosenOf, toggled } from "./competitors";
import { useField } from "./DraftContext";
import { Notes } from "./fields";

export function Competitors() {
  const schedulers = usePolled<SchedulerInfo[]>("/api/schedulers", 5_000);
  const { value, problems, set } = useField("schedulers");
  const known = schedulers.data ?? [];
  const deployed = known.filter((each) => each.deployed > 0).map((each) => each.name);
  const chosen = chosenOf(value);
  const ticked = chosen ?? deployed;
  const gone = ticked.filter((name) => !known.some((each) => each.name === name));
  const rows = [...known, ...gone.map((name) => ({ name, deployed: 0, description: "" }))];
  return (
    <Widget
      id="new-schedulers"
      title="Who competes"
      hint="Every scheduler gets the same tasks and a cluster of its own. Keep the Oracle: the others are measured by it."
      source={schedulers}
      empty={rows.length === 0 && "No scheduler answers: deploy at least one worker."}
      scroll
    >
      <fieldset className="grid gap-1 px-1 sm:grid-cols-2" aria-describedby="schedulers-note">
        <legend className="sr-only">Schedulers</legend>
        {rows.map((row) => {
          const on = ticked.includes(row.name);
          return (
            <label key={row.name} className="flex cursor-pointer items-start gap-2.5 rounded-lg px-2 py-1.5 hover:bg-sunken has-disabled:cursor-not-allowed has-disabled:opacity-60">
              <input
                type="checkbox"
                data-scheduler={row.name}
                className="mt-1 size-4 shrink-0 accent-(--accent)"
                checked={on}
                // An empty list would mean everybody, so the last one stays.
                disabled={(on && ticked.length === 1) || (!on && row.deployed === 0)}
                onChange={() => set(toggled(chosen, deployed, row.name))}
              />
              <span className="min-w-0">
                <SchedulerName name={row.name} plain />
                <span className="block text-xs text-muted">{row.description || workers(row.deployed)}</span>
                {row.deployed === 0 && row.description && <span className="block text-xs text-warn">not deployed</span>}
              </span>
            </label>
          );
        })}
      </fieldset>
      <div className="px-1 pt-2">
        <Notes id="schedulers" problems={problems} />
      </div>
    </Widget>
  );
}

function workers(deployed: number): string {
  if (deployed === 0) return "not deployed";
  return `${deployed} ${deployed === 1 ? "worker" : "workers"}`;
}
