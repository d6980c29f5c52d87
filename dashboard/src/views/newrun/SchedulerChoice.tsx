import { usePolled } from "../../api/polling";
import type { Scheduler } from "../../api/types";
import { SchedulerName, Widget } from "../../ui";
import { useField } from "./DraftContext";
import { FieldNote } from "./fields";
import { selectionOf, toggled } from "./schedulerChoice";

export function SchedulerChoice() {
  const schedulers = usePolled<Scheduler[]>("/api/schedulers", 5_000);
  const { value, problems, set } = useField("schedulers");
  const known = schedulers.data ?? [];
  const deployed = known.filter((each) => each.deployed > 0).map((each) => each.name);
  const selection = selectionOf(value);
  const selected = selection ?? deployed;
  const missing = selected.filter((name) => !known.some((each) => each.name === name));
  const rows = [...known, ...missing.map((name) => ({ name, deployed: 0, description: "" }))];
  return (
    <Widget
      exported={false}
      id="new-schedulers"
      title="Schedulers"
      caption="Every scheduler gets the same tasks and its own cluster. Keep the Oracle: the others are compared with it."
      source={schedulers}
      empty={rows.length === 0 && "No scheduler is deployed. Start at least one worker."}
      scroll
    >
      <fieldset className="grid gap-1 px-1 sm:grid-cols-2" aria-describedby="schedulers-note">
        <legend className="sr-only">Schedulers</legend>
        {rows.map((row) => {
          const checked = selected.includes(row.name);
          return (
            <label
              key={row.name}
              className="flex cursor-pointer items-start gap-2.5 rounded-lg px-2 py-1.5 hover:bg-sunken has-disabled:cursor-not-allowed has-disabled:opacity-60"
            >
              <input
                type="checkbox"
                data-scheduler={row.name}
                className="mt-1 size-4 shrink-0 accent-(--accent)"
                checked={checked}
                // An empty list means all schedulers, so the last one cannot be removed.
                disabled={(checked && selected.length === 1) || (!checked && row.deployed === 0)}
                onChange={() => set(toggled(selection, deployed, row.name))}
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
        <FieldNote id="schedulers" problems={problems} />
      </div>
    </Widget>
  );
}

function workers(deployed: number): string {
  if (deployed === 0) return "not deployed";
  return `${deployed} ${deployed === 1 ? "worker" : "workers"}`;
}
