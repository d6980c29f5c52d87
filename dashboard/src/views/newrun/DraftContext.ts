/** The draft of the form: its values, defaults and problems, and how to change it. */
import { createContext, useContext } from "react";
import type { RunSpec } from "../../api/types";
import { type Draft, valueAt } from "./draft";

export interface DraftState {
  draft: Draft;
  /** The last valid draft, with its defaults. */
  complete: RunSpec | null;
  problems: Record<string, string[]>;
  set: (path: string, value: unknown) => void;
  setPreset: (preset: string) => void;
  /** The fields of the platform before, and of the next one; null: the default node. */
  setPlatform: (before: Draft | null, next: Draft | null) => void;
}

export const DraftContext = createContext<DraftState | null>(null);

export function useDraft(): DraftState {
  const state = useContext(DraftContext);
  if (!state) throw new Error("useDraft needs a DraftContext");
  return state;
}

/** One field: its value, and the default while it has none. */
export function useField(path: string): {
  value: unknown;
  fallback: unknown;
  problems: string[] | undefined;
  set: (value: unknown) => void;
} {
  const { draft, complete, problems, set } = useDraft();
  return {
    value: valueAt(draft, path),
    fallback: valueAt(complete, path),
    problems: problems[path],
    set: (value) => set(path, value),
  };
}
