/** Fills the form with the spec of an earlier run: ?from=RUN. */
import { useEffect } from "react";
import { get, post, runPath } from "../../api/client";
import type { Run, SpecCheck } from "../../api/types";
import { toast } from "../../ui";
import { setParameters, useParameter } from "../../url";
import { type Draft, withGeneratedTasks, withoutDefaults, withValue } from "./draft";

export function useRepeatedRun(setDraft: (draft: Draft) => void): void {
  const from = useParameter("from");
  useEffect(() => {
    if (!from) return;
    const controller = new AbortController();
    fetchDraft(from, controller.signal)
      .then((draft) => {
        setDraft(draft);
        // Only once: Back must not overwrite what the user has changed since.
        setParameters({ from: null });
      })
      .catch((error: unknown) => {
        if (!controller.signal.aborted) toast(`Could not load run ${from}: ${String(error)}`, "bad");
      });
    return () => controller.abort();
  }, [from, setDraft]);
}

async function fetchDraft(run: string, signal: AbortSignal): Promise<Draft> {
  const { spec: earlier } = await get<Run>(runPath(run), signal);
  const { preset } = earlier.workload;
  const spec = withGeneratedTasks(earlier);
  if (spec !== earlier) {
    toast(
      `The tasks of run ${run} were submitted; the new run generates its own. To submit them again: hybrid trace replay.`,
    );
  }
  // The defaults of the same preset, so that its mix is not part of the draft.
  const defaults = await post<SpecCheck>("/api/runs/check", { workload: { preset } }, { signal });
  return withValue(withoutDefaults(spec, defaults.spec ?? {}), "workload.preset", preset);
}
