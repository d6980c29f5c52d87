/** The run that a view is about: the one in the address, else the one that the feed follows. */
import { isActive } from "../api/runs";
import type { RunState } from "../api/types";
import { useRun } from "../live";
import { useParameter } from "../url";

export function useChosenRun(): string | null {
  const asked = useParameter("run");
  const followed = useRun();
  return asked ?? followed;
}

/** How often to ask about a run: one that has ended is still being stored for a moment. */
export function paceOf(state: RunState | null): number {
  return state === null || isActive(state) ? 3_000 : 20_000;
}
