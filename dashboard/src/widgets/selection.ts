/** What several widgets share: the selected scheduler, the window of tasks, and the data of both. */
import type { Polled } from "../api/polling";
import { useRunPolled } from "../api/runs";
import type { Analysis, Progress } from "../api/types";
import { useSchedulers } from "../live";
import { useRaceMeasure } from "../raceMeasure";
import { ORACLE } from "../schedulers";
import { useParameter } from "../url";

export const WINDOWS = [200, 1000, 5000, 10000];
const DEFAULT_WINDOW = 1000;

/** The scheduler in the address if the run has it; else the Oracle; else the first. */
export function useSelectedScheduler(): string | null {
  const selected = useParameter("scheduler");
  const names = useSchedulers();
  if (selected && names.includes(selected)) return selected;
  return names.includes(ORACLE) ? ORACLE : (names[0] ?? null);
}

/** How many of the newest tasks the analysis covers. */
export function useWindow(): number {
  const selected = Number(useParameter("window"));
  return WINDOWS.includes(selected) ? selected : DEFAULT_WINDOW;
}

export function useAnalysis(): Polled<Analysis> {
  const scheduler = useSelectedScheduler();
  const window = useWindow();
  const wins_by = useRaceMeasure();
  return useRunPolled<Analysis>("/analysis", { window, scheduler, wins_by });
}

/** The cumulative totals of every scheduler, from the stored results. */
export function useProgress(): Polled<Progress> {
  return useRunPolled<Progress>("/progress", { points: 200 });
}

/** The text while no task is complete; undefined when there is data. */
export function noTasksYet(analysis: Analysis | null): string | undefined {
  if (!analysis || analysis.window.tasks > 0) return undefined;
  return "No task has been finished by every scheduler yet.";
}
