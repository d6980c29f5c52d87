/** The shapes of the gateway's interface; times in seconds, energy J, cost $, memory MB. */

export type RunState = "running" | "paused" | "stopped" | "completed";

export interface Problem {
  type?: string;
  title: string;
  status: number;
  detail: string;
  problems?: string[];
}

export interface Config {
  token_required: boolean;
  version: string;
}

/** A RunSpec with its defaults filled; only the fields that the dashboard reads are named. */
export interface RunSpec {
  name: string;
  seed: number;
  tasks: number | null;
  pace: number | "max";
  schedulers: string[];
  cluster: { cpus: number; gpus: number; gpu_memory_mb: number; [field: string]: unknown };
  physics: {
    split: string;
    memory_policy: string;
    cost_model: string;
    [field: string]: unknown;
  };
  learning: { pretrain_tasks: number; energy_weight: number; [field: string]: unknown };
  workload: {
    source?: "generated" | "submitted";
    preset: string;
    arrival_rate: number;
    drift: { after: number; preset: string }[];
    dependencies: { probability: number; [field: string]: unknown };
    [field: string]: unknown;
  };
  [field: string]: unknown;
}

export interface Run {
  run: string;
  name: string;
  state: RunState;
  created_at: number;
  updated_at: number;
  spec: RunSpec;
}

export interface Standing {
  results: number;
  failed: number;
  gpu_tasks: number;
  total_time: number;
  avg_time: number;
  avg_wait: number;
  makespan: number;
  avg_energy: number;
  avg_cost: number;
  total_energy: number;
  total_cost: number;
  clock: number;
  cpu_busy: number[];
  gpu_busy: number[];
  vs_oracle: number | null;
}

export interface RunDetail extends Run {
  tasks: number;
  /** The cluster bound in seconds: no makespan is below it. Null until the run is complete. */
  bound: number | null;
  schedulers: Record<string, Standing>;
}

export interface SchedulerInfo {
  name: string;
  deployed: number;
  description: string;
}

export interface Preset {
  name: string;
  description: string;
}

export interface SpecCheck {
  ok: boolean;
  problems: string[];
  spec: RunSpec | null;
}

export interface Weights {
  time: number;
  energy: number;
  cost: number;
}

export interface Ranking {
  run: string;
  weights: Weights;
  ranking: {
    rank: number;
    name: string;
    score: number;
    pareto: boolean;
    avg_time: number;
    avg_energy: number;
    avg_cost: number;
  }[];
}

export interface ProgressSeries {
  tasks: number[];
  total_time: number[];
  total_energy: number[];
  total_cost: number[];
}

export interface Progress {
  run: string;
  schedulers: Record<string, ProgressSeries>;
}

export interface Utilization {
  run: string;
  scheduler: string;
  start: number;
  end: number;
  step: number;
  average: number;
  devices: { name: string; utilization: number; busy: number[] }[];
}

export interface HeatmapCell {
  tasks: number;
  gpu_share: number;
}

export interface Analysis {
  run: string;
  scheduler: string;
  window: { first: number; last: number; tasks: number };
  sizes: { edges: number[]; counts: number[] };
  wins: { names: string[]; matrix: (number | null)[][]; ties: (number | null)[][] };
  correlation: { names: string[]; matrix: (number | null)[][] };
  heatmap: {
    size_edges: number[];
    intensity_edges: number[];
    cells: (HeatmapCell | null)[][];
  };
  scatter: {
    task_id: number;
    size: number;
    compute_intensity: number;
    memory_required: number;
    gpu_fraction: number;
  }[];
  split: Record<string, { gpu_time: number; cpu_time: number; gpu_tasks: number; tasks: number }>;
}

export interface TaskRow {
  task_id: number;
  scheduler_name: string;
  gpu_fraction: number;
  gpu: number;
  model_version: number;
  explored: boolean;
  probability: number;
  actual_time: number;
  wait: number;
  turnaround: number;
  energy_consumption: number;
  execution_cost: number;
  status: "ok" | "failed";
  size: number;
  compute_intensity: number;
  memory_required: number;
  arrival_time: number;
  vs_oracle: number | null;
}

export interface TaskPage {
  rows: TaskRow[];
  next_before: number | null;
}

export interface TaskResult extends TaskRow {
  gpu_time: number;
  cpu_time: number;
  gpu_start: number;
  cpu_start: number;
  finish: number;
  cost_cloud: number;
  cost_electricity: number;
  explanation: string;
}

export interface TaskDetail {
  run: string;
  task: {
    task_id: number;
    size: number;
    compute_intensity: number;
    memory_required: number;
    arrival_time: number;
    dependencies: number[];
  };
  physics: {
    cpu_seconds: number;
    gpu_seconds: number;
    speedup: number;
    transfer_seconds: number;
    fits_gpu_memory: boolean;
    best_share: number;
  };
  results: TaskResult[];
}

export interface ArenaEvent {
  sequence: number;
  at: number;
  kind: string;
  service: string;
  run: string | null;
  message: string;
  data: Record<string, unknown> | null;
}

export interface EventPage {
  events: ArenaEvent[];
  next_before: number | null;
}

/** A dead letter. */
export interface Letter {
  sequence: number;
  at: number;
  service: string;
  /** Where it came on; empty when it does not say. */
  subject: string;
  reason: string;
  size: number;
  /** Why it can never be replayed; null: it may. */
  hindrance: string | null;
}

export interface LetterPage {
  letters: Letter[];
  next_before: number | null;
  total: number;
  services: Record<string, number>;
}

export interface ModelRow {
  run: string;
  name: string;
  version: number;
  shipped: boolean | number;
  reason: string;
  score: number | null;
  champion_score: number | null;
  sha256: string;
  format: string;
  trained_on: number;
  first_task: number;
  last_task: number;
  metrics: Record<string, number> | string;
  created_at: string;
}

export interface Status {
  is_running: boolean;
  tasks_processed: number;
  run: string | null;
  state: RunState | null;
  tasks_sent: number;
  schedulers: Record<string, Standing>;
  lag: Record<string, number>;
  rejected: number;
}

export interface ServiceReport {
  service: string;
  scheduler: string;
  instance: string;
  host: string;
  pid: number;
  started_at: number;
  http_port: number;
  description: string;
  /** Empty when all is well. */
  problems: Record<string, string>;
  [field: string]: unknown;
}

export interface Health {
  status: "ok" | "degraded";
  nats: { ok: boolean; problem: string | null };
  clickhouse: { ok: boolean; problem: string | null };
  services: ServiceReport[];
  missing: string[];
}

export interface Accepted {
  run: string;
  batch: number;
  task_ids: number[];
}
