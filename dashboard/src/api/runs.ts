/** The list of runs, and requests about the run on the screen. */
import { useLive, useRun } from "../live";
import { withoutFingerprint } from "../workload";
import { path, type Query, runPath } from "./client";
import { type Polled, usePolled } from "./polling";
import type { Run, RunState } from "./types";

export const ACTIVE_MS = 2_000;
const IDLE_MS = 20_000;

export function isActive(state: RunState | null): boolean {
  return state === "running" || state === "paused";
}

/** How often to poll a run that is not the one of the WebSocket. */
export function pollInterval(state: RunState | null): number {
  return state === null || isActive(state) ? 3_000 : IDLE_MS;
}

/** The newest runs, newest first. */
export function useRuns(): Polled<Run[]> {
  return usePolled<Run[]>(path("/api/runs", { limit: 50 }), 5_000);
}

/** Polls a path below the run on the screen (0: once); sends nothing while `ready` is false. */
export function useRunPolled<T>(rest: string, query: Query = {}, everyMs = ACTIVE_MS, ready = true): Polled<T> {
  const run = useRun();
  const state = useLive((live) => live.state);
  return usePolled<T>(
    run && ready ? runPath(run, rest, query) : null,
    everyMs && (state === "running" ? everyMs : IDLE_MS),
  );
}

export function runLabel(run: Pick<Run, "run" | "name">): string {
  return withoutFingerprint(run.name) || run.run;
}

export function runLabelWithId(run: Pick<Run, "run" | "name">): string {
  return run.name ? `${withoutFingerprint(run.name)} · ${run.run}` : run.run;
}
