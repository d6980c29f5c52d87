/** The spec of an earlier run, cut down to what differs from the defaults. */
import { useEffect } from "react";
import { get, post, runPath } from "../../api/client";
import type { Run, SpecCheck } from "../../api/types";
import { toast } from "../../ui";
import { setParameters, useParameter } from "../../url";
import { type Draft, generated, withoutDefaults, withValue } from "./draft";

export function useRunToRepeat(take: (draft: Draft) => void): void {
  const from = useParameter("from");
  useEffect(() => {
    if (!from) return;
    const controller = new AbortController();
    fetchDraft(from, controller.signal)
      .then((draft) => {
        take(draft);
        // From here on the draft is the person's own; coming back must not undo what they did.
        setParameters({ from: null });
      })
      .catch((error: unknown) => {
        if (!controller.signal.aborted) toast(`Run ${from} could not be read: ${String(error)}`, "bad");
      });
    return () => controller.abort();
  }, [from, take]);
}

async function fetchDraft(run: string, signal: AbortSignal): Promise<Draft> {
  const { spec: repeated } = await get<Run>(runPath(run), signal);
  const { preset } = repeated.workload;
  const spec = generated(repeated);
  if (spec !== repeated) {
    toast(`The tasks of run ${run} came from outside; the new run makes its own. hybrid trace replay sends them again.`);
  }
  // The defaults of the same preset: a mix that is the preset's own need not be repeated.
  const usual = await post<SpecCheck>("/api/runs/check", { workload: { preset } }, signal);
  return withValue(withoutDefaults(spec, usual.spec ?? {}), "workload.preset", preset);
}
