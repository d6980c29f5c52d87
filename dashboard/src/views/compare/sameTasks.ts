/** Runs of different lengths, compared after equally many tasks. Pure functions. */
import type { Progress, RunDetail, SchedulerTotals, Track } from "../../api/types";
import { ORACLE } from "../../schedulers";

export interface LoadedRun {
  detail: RunDetail;
  progress: Progress;
}

type Averages = "avg_time" | "avg_wait" | "avg_turnaround" | "avg_energy" | "avg_cost";

/** A scheduler's averages after `tasks` tasks. */
export interface TotalsAt extends Pick<SchedulerTotals, Averages | "tasks" | "failed" | "turnaround_p95"> {
  vs_oracle: number | null;
  /** Known only after all tasks of the run. */
  avg_slowdown: number | null;
  vs_bound: number | null;
}

/** The largest number of tasks at which all of them have a point; 0: none. */
export function commonTasks(tracks: readonly Track[]): number {
  const [first, ...others] = tracks;
  const sets = others.map((track) => new Set(track.tasks));
  return first?.tasks.filter((tasks) => sets.every((set) => set.has(tasks))).at(-1) ?? 0;
}

function trackOf(run: LoadedRun, name: string): Track | undefined {
  const track = run.progress.schedulers[name];
  return track?.tasks.length ? track : undefined;
}

/** For each run, every scheduler that it has: after as many tasks as in the other runs that have it. */
export function alignedTotals(runs: readonly LoadedRun[]): Record<string, TotalsAt>[] {
  const names = [...new Set(runs.flatMap((run) => Object.keys(run.progress.schedulers)))];
  const all: Record<string, TotalsAt>[] = runs.map(() => ({}));
  for (const name of names) {
    const tracks = runs.map((run) => trackOf(run, name));
    const oracles = runs.flatMap((run, at) => (tracks[at] ? (trackOf(run, ORACLE) ?? []) : []));
    const own = tracks.flatMap((track) => track ?? []);
    // An Oracle that has no point there leaves only the comparison with it open.
    const tasks = commonTasks([...own, ...oracles]) || commonTasks(own);
    runs.forEach((run, at) => {
      const track = tracks[at];
      const row = all[at];
      if (track && row && tasks > 0)
        row[name] = totalsAt(track, trackOf(run, ORACLE), tasks, run.detail.schedulers[name]);
    });
  }
  return all;
}

function totalsAt(
  track: Track,
  oracle: Track | undefined,
  tasks: number,
  standing: SchedulerTotals | undefined,
): TotalsAt {
  const at = track.tasks.indexOf(tasks);
  const mean = (totals: number[]) => (totals[at] ?? 0) / tasks;
  const [time, turnaround] = [mean(track.total_time), mean(track.total_turnaround)];
  const best = oracle?.total_time[oracle.tasks.indexOf(tasks)];
  const ended = standing?.tasks === tasks ? standing : undefined;
  return {
    tasks,
    failed: track.failed[at] ?? 0,
    avg_time: time,
    avg_wait: turnaround - time,
    avg_turnaround: turnaround,
    turnaround_p95: track.turnaround_p95[at] ?? 0,
    avg_energy: mean(track.total_energy),
    avg_cost: mean(track.total_cost),
    vs_oracle: best ? (track.total_time[at] ?? 0) / best : null,
    avg_slowdown: ended?.avg_slowdown ?? null,
    vs_bound: ended?.vs_bound ?? null,
  };
}

/** Runs that differ only in their seed (and name) are one group. */
export function seedGroups(runs: readonly LoadedRun[]): number[][] {
  const groups = new Map<string, number[]>();
  runs.forEach(({ detail }, at) => {
    const { seed: _seed, name: _name, ...rest } = detail.spec;
    const key = JSON.stringify(rest);
    groups.set(key, [...(groups.get(key) ?? []), at]);
  });
  return [...groups.values()];
}

/** Student's t for a two-sided 95 % interval, by degrees of freedom. */
const T95 = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131];
const T95_MORE = 2.1;

export interface Estimate {
  mean: number;
  /** Half of the 95 % confidence interval; null with a single run. */
  half: number | null;
  runs: number;
}

export function estimate(values: readonly number[]): Estimate | null {
  const runs = values.length;
  if (runs === 0) return null;
  const mean = values.reduce((sum, value) => sum + value, 0) / runs;
  if (runs === 1) return { mean, half: null, runs };
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (runs - 1);
  return { mean, half: (T95[runs - 2] ?? T95_MORE) * Math.sqrt(variance / runs), runs };
}
