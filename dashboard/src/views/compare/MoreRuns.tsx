import { X } from "lucide-react";
import { runLabel, runLabelWithId, useRuns } from "../../api/runs";
import type { Run } from "../../api/types";
import { Button, Select } from "../../ui";
import { setParameters } from "../../url";

/** The further runs of a comparison: ?more=RUN,RUN. */
export function MoreRuns({ chosen, more }: { chosen: string[]; more: string[] }) {
  const runs = useRuns().data ?? [];
  const others = runs.filter((run) => !chosen.includes(run.run));
  const seeds = siblings(runs, chosen);
  const set = (next: string[]) => setParameters({ more: next.join(",") }, false);
  return (
    <div className="flex flex-wrap items-center gap-2 text-xs">
      {more.map((id, at) => {
        const run = runs.find((each) => each.run === id);
        return (
          <span key={id} className="inline-flex items-center gap-1.5 rounded-full border border-line py-1 pr-1 pl-3">
            <b className="text-accent">{String.fromCharCode(67 + at)}</b>
            {run ? `${runLabel(run)}, seed ${run.spec.seed}` : id}
            <button
              type="button"
              aria-label={`Leave out run ${id}`}
              className="rounded-full p-0.5 text-muted hover:text-ink"
              onClick={() => set(more.filter((each) => each !== id))}
            >
              <X aria-hidden className="size-3.5" />
            </button>
          </span>
        );
      })}
      {others.length > 0 && (
        <Select
          label="Add a run"
          data-testid="compare-add"
          value=""
          choices={[
            { value: "", label: "Add a run…" },
            ...others.map((run) => ({ value: run.run, label: `${runLabelWithId(run)}, seed ${run.spec.seed}` })),
          ]}
          onChoose={(run) => run && set([...more, run])}
        />
      )}
      {seeds.length > 0 && (
        <Button className="h-8! text-xs" data-testid="compare-seeds" onClick={() => set([...more, ...seeds])}>
          Add {seeds.length} {seeds.length === 1 ? "run that differs" : "runs that differ"} only in the seed
        </Button>
      )}
    </div>
  );
}

const MOST = 20;

/** Runs that are one of the chosen ones with another seed. */
function siblings(runs: Run[], chosen: string[]): string[] {
  const key = ({ spec }: Run) => JSON.stringify({ ...spec, seed: 0, name: "" });
  const wanted = new Set(runs.filter((run) => chosen.includes(run.run)).map(key));
  const found = runs.filter((run) => !chosen.includes(run.run) && wanted.has(key(run)));
  return found.map((run) => run.run).slice(0, Math.max(0, MOST - chosen.length));
}
