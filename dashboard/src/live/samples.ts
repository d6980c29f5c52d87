/** Messages for tests. */
import type { ComparisonRow, Notification, RunSpec, Snapshot, Track, Update } from "../api/types";

export function row(name: string, change: Partial<ComparisonRow> = {}): ComparisonRow {
  return {
    name,
    tasks: 10,
    failed: 0,
    avg_time: 1,
    avg_energy: 30,
    avg_cost: 0.00002,
    avg_wait: 0,
    avg_turnaround: 1,
    turnaround_p95: 2,
    total_time: 10,
    total_energy: 300,
    total_cost: 0.0002,
    makespan: 12,
    gpu_share: 0.5,
    vs_oracle: null,
    model_version: 0,
    score: 1,
    rank: 1,
    pareto: true,
    ...change,
  };
}

export function update(change: Partial<Update> = {}): Update {
  return {
    type: "simulation_update",
    snapshot: false,
    run: "r1",
    state: "running",
    at: 100,
    sequence: 2,
    task: null,
    latest_results: {},
    comparison: [],
    utilization: { average_utilization: 0.5, types: {}, schedulers: {} },
    rate: 20,
    tasks_sent: 10,
    tasks_processed: 10,
    suspended: {},
    pretraining: [],
    learners: 0,
    lag: {},
    rejected: 0,
    left_out: 0,
    ...change,
  };
}

export function snapshot(change: Partial<Snapshot> = {}): Snapshot {
  const spec = { schedulers: [] as string[] } as RunSpec;
  return { ...update({ sequence: 1 }), snapshot: true, spec, meters: [], types: [], notifications: [], ...change };
}

export function notification(at: number, message = `event ${at}`, group = message): Notification {
  const about = { kind: "run", service: "gateway", run: "r1", message };
  return { type: "notification", at, ...about, level: "info", group, count: 1 };
}

/** Totals after some tasks: 30 W, and no waiting. */
export function track(tasks: number[], time: number[]): Track {
  return {
    tasks,
    total_time: time,
    total_turnaround: time,
    turnaround_p95: time,
    total_energy: time.map((seconds) => seconds * 30),
    total_cost: time,
    failed: tasks.map(() => 0),
  };
}
