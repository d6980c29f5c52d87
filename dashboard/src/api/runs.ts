/** The run on the screen, and questions about it at a pace that fits its state. */
import { useLive, useRun } from "../live";
import type { Query } from "./client";
import { path, runPath } from "./client";
import type { Run, RunState } from "./types";
import { type Polled, usePolled } from "./usePolled";

/** A run that moves is asked about often; one that rests, now and then. */
export const BUSY_MS = 2_000;
const RESTING_MS = 20_000;

export function isActive(state: RunState | null): boolean {
  return state === "running" || state === "paused";
}

/** The newest runs, first. */
export function useRuns(): Polled<Run[]> {
  return usePolled<Run[]>(path("/api/runs", { limit: 50 }), 5_000);
}

/** Poll a path below the run on the screen; while `ready` is false, nothing is asked. */
export function useRunPolled<T>(rest: string, query: Query = {}, every = BUSY_MS, ready = true): Polled<T> {
  const run = useRun();
  const state = useLive((live) => live.state);
  // The last tasks are still being stored when a run ends: the change of pace asks once more.
  return usePolled<T>(run && ready ? runPath(run, rest, query) : null, state === "running" ? every : RESTING_MS);
}
