/** The scheduler that the widgets look into, and the answers that several of them share. */
import type { Analysis, Progress } from "../api/types";
import { useRunPolled } from "../api/runs";
import type { Polled } from "../api/usePolled";
import { useSchedulers } from "../live";
import { ORACLE } from "../schedulers";
import { useParameter } from "../url";

export const WINDOWS = [200, 1000, 5000, 10000];
const DEFAULT_WINDOW = 1000;

/** The one in the address, if it competes; else the Oracle; else the first. */
export function useSubject(): string | null {
  const asked = useParameter("scheduler");
  const names = useSchedulers();
  if (asked && names.includes(asked)) return asked;
  return names.includes(ORACLE) ? ORACLE : (names[0] ?? null);
}

export function useWindow(): number {
  const asked = Number(useParameter("window"));
  return WINDOWS.includes(asked) ? asked : DEFAULT_WINDOW;
}

export function useAnalysis(): Polled<Analysis> {
  const scheduler = useSubject();
  const window = useWindow();
  return useRunPolled<Analysis>("/analysis", { window, scheduler });
}

/** Every scheduler's totals over the run so far, from what is stored. */
export function useProgress(): Polled<Progress> {
  return useRunPolled<Progress>("/progress", { points: 120 });
}

/** What to say while too little has happened; undefined when there is something to show. */
export function nothingYet(analysis: Analysis | null): string | undefined {
  if (!analysis || analysis.window.tasks > 0) return undefined;
  return "No task has been finished by every scheduler yet.";
}
