import { useCallback, useMemo, useState } from "react";
import { ApiError, post } from "../api/client";
import type { Run } from "../api/types";
import { createStore, useSelected } from "../store";
import { toast } from "../ui";
import { openView } from "../url";
import { ClusterFields, LearningFields } from "./newrun/ArenaFields";
import { Competitors } from "./newrun/Competitors";
import { type Draft, fromJson, toJson, withPreset, withValue } from "./newrun/draft";
import { DraftContext } from "./newrun/DraftContext";
import { Launch } from "./newrun/Launch";
import { FORM_PATHS } from "./newrun/paths";
import { sortProblems } from "./newrun/problems";
import { RunFields, WorkloadFields } from "./newrun/RunFields";
import { SpecJson } from "./newrun/SpecJson";
import { useCheck } from "./newrun/useCheck";
import { useRunToRepeat } from "./newrun/useRunToRepeat";

/** Outlives the view: who looks at another page in between finds the form as it was. */
const kept = createStore<Draft>({});

export default function NewRun() {
  const draft = useSelected(kept, (draft) => draft);
  const [json, setJson] = useState<string | null>(null);
  const [starting, setStarting] = useState(false);
  const check = useCheck(draft);
  const unreadable = json === null ? null : fromJson(json).problem;
  const sorted = useMemo(() => sortProblems(check.problems, FORM_PATHS), [check.problems]);

  const change = useCallback((next: Draft) => {
    kept.set(next);
    setJson(null);
  }, []);
  useRunToRepeat(change);

  const type = (text: string) => {
    setJson(text);
    const parsed = fromJson(text);
    if (parsed.draft) kept.set(parsed.draft);
  };
  const start = async () => {
    setStarting(true);
    try {
      const run = await post<Run>("/api/runs", draft);
      toast(`Run ${run.name || run.run} has started`);
      openView("arena", { run: run.run });
    } catch (error) {
      const token = error instanceof ApiError && error.status === 401;
      toast(token ? "This gateway wants a token: enter it in the settings." : `Not started: ${error instanceof Error ? error.message : String(error)}`, "bad");
    } finally {
      setStarting(false);
    }
  };

  return (
    <DraftContext
      value={{
        draft,
        filled: check.filled,
        problems: sorted.fields,
        set: (path, value) => change(withValue(draft, path, value)),
        setPreset: (preset) => change(withPreset(draft, preset)),
      }}
    >
      <h2 className="pb-3 text-lg font-semibold tracking-tight">New run</h2>
      <div className="grid grid-cols-1 items-start gap-4 xl:grid-cols-[minmax(0,5fr)_minmax(0,3fr)]">
        <div className="flex min-w-0 flex-col gap-4">
          <RunFields />
          <WorkloadFields />
          <Competitors />
          <ClusterFields />
          <LearningFields />
        </div>
        <div className="flex min-w-0 flex-col gap-4 xl:sticky xl:top-20">
          <Launch
            check={check}
            others={sorted.others}
            blocked={unreadable !== null}
            starting={starting}
            onStart={() => void start()}
            onReset={() => change({})}
          />
          <SpecJson
            text={json ?? toJson(draft)}
            problem={unreadable}
            onText={type}
            onLeave={() => unreadable === null && setJson(null)}
          />
        </div>
      </div>
    </DraftContext>
  );
}
