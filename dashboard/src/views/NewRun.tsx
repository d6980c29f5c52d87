import { useMutation } from "@tanstack/react-query";
import { useCallback, useMemo, useState } from "react";
import { useStore } from "zustand";
import { createStore } from "zustand/vanilla";
import { post } from "../api/client";
import { toastFailure } from "../api/polling";
import type { Run } from "../api/types";
import { useReplay } from "../trace/replay";
import { toast } from "../ui";
import { openView } from "../url";
import { ClusterFields, LearningFields } from "./newrun/ClusterFields";
import { DraftContext } from "./newrun/DraftContext";
import { type Draft, fromJson, toJson, withPlatform, withPreset, withValue } from "./newrun/draft";
import { FORM_PATHS } from "./newrun/paths";
import { currentProblems, sortProblems } from "./newrun/problems";
import { RunFields, WorkloadFields } from "./newrun/RunFields";
import { SchedulerChoice } from "./newrun/SchedulerChoice";
import { SpecJson } from "./newrun/SpecJson";
import { StartPanel } from "./newrun/StartPanel";
import { TraceDrop } from "./newrun/TraceDrop";
import { useRepeatedRun } from "./newrun/useRepeatedRun";
import { useSpecCheck } from "./newrun/useSpecCheck";

const KEY = "hybrid.draft";

/** Kept by the browser, so that the form has its values after another view, a reload and Back. */
const draftStore = createStore<Draft>(() => fromJson(sessionStorage.getItem(KEY) ?? "").draft ?? {});
draftStore.subscribe((draft) => sessionStorage.setItem(KEY, toJson(draft)));

export default function NewRun() {
  const draft = useStore(draftStore);
  const [json, setJson] = useState<string | null>(null);
  const check = useSpecCheck(draft);
  const startingTrace = useReplay(({ replay }) => replay !== null && replay.run === null);
  const jsonProblem = json === null ? null : fromJson(json).problem;
  const sorted = useMemo(() => sortProblems(check.problems, FORM_PATHS), [check.problems]);
  const problems = useMemo(() => currentProblems(sorted.fields, draft, check.checked), [sorted, draft, check.checked]);

  const change = useCallback((next: Draft) => {
    draftStore.setState(next, true);
    setJson(null);
  }, []);
  useRepeatedRun(change);

  const onText = (text: string) => {
    setJson(text);
    const parsed = fromJson(text);
    if (parsed.draft) draftStore.setState(parsed.draft, true);
  };
  const start = useMutation({
    mutationFn: () => post<Run>("/api/runs", draft),
    onSuccess: (run) => {
      toast(`Run ${run.name || run.run} is started`);
      openView("arena", { run: run.run });
    },
    onError: (error) => toastFailure("Could not start the run", error),
  });

  return (
    <DraftContext
      value={{
        draft,
        complete: check.complete,
        problems,
        set: (path, value) => change(withValue(draft, path, value)),
        setPreset: (preset) => change(withPreset(draft, preset)),
        setPlatform: (before, next) => change(withPlatform(draft, before, next)),
      }}
    >
      <h2 className="pb-3 text-lg font-semibold tracking-tight">New run</h2>
      <div className="grid grid-cols-1 items-start gap-4 xl:grid-cols-[minmax(0,5fr)_minmax(0,3fr)]">
        <div className="flex min-w-0 flex-col gap-4">
          <RunFields />
          <WorkloadFields />
          <SchedulerChoice />
          <ClusterFields />
          <LearningFields />
        </div>
        <div className="flex min-w-0 flex-col gap-4 xl:sticky xl:top-20">
          <StartPanel
            check={check}
            invalid={Object.keys(problems).length}
            others={check.current ? sorted.others : []}
            blocked={jsonProblem !== null}
            starting={start.isPending || startingTrace}
            onStart={() => start.mutate()}
            onReset={() => change({})}
          />
          <TraceDrop />
          <SpecJson
            text={json ?? toJson(draft)}
            problem={jsonProblem}
            onText={onText}
            onLeave={() => jsonProblem === null && setJson(null)}
          />
        </div>
      </div>
    </DraftContext>
  );
}
