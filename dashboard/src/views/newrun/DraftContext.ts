/** What every field of the form needs: the draft, its defaults, its problems, and a way to change it. */
import { createContext, useContext } from "react";
import type { RunSpec } from "../../api/types";
import { type Draft, valueAt } from "./draft";

export interface DraftState {
  draft: Draft;
  /** The last draft that could be run, with its defaults filled. */
  filled: RunSpec | null;
  problems: Record<string, string[]>;
  set: (path: string, value: unknown) => void;
  setPreset: (preset: string) => void;
}

export const DraftContext = createContext<DraftState | null>(null);

export function useDraft(): DraftState {
  const state = useContext(DraftContext);
  if (!state) throw new Error("a field of the form outside of the form");
  return state;
}

/** One field: what was set, and what counts while nothing is. */
export function useField(path: string): {
  value: unknown;
  usual: unknown;
  problems: string[] | undefined;
  set: (value: unknown) => void;
} {
  const { draft, filled, problems, set } = useDraft();
  return {
    value: valueAt(draft, path),
    usual: valueAt(filled, path),
    problems: problems[path],
    set: (value) => set(path, value),
  };
}
