/** What the WebSocket says. */
import type { RunSpec, RunState } from "../api/types";

export interface ComparisonRow {
  name: string;
  tasks: number;
  failed: number;
  avg_time: number;
  avg_energy: number;
  avg_cost: number;
  avg_wait: number;
  avg_turnaround: number;
  total_time: number;
  total_energy: number;
  total_cost: number;
  makespan: number;
  gpu_share: number;
  vs_oracle: number | null;
  model_version: number;
  score: number;
  rank: number;
  pareto: boolean;
}

export interface LatestTask {
  id: number;
  size: number;
  intensity: number;
  memory: number;
}

export interface LatestResult {
  time: number;
  energy: number;
  cost: number;
  gpu_fraction: number;
  gpu: number;
  model_version: number;
  explored: boolean;
  status: string;
}

export interface SchedulerUtilization {
  average_utilization: number;
  devices: Record<string, number>;
}

export interface UtilizationNow {
  average_utilization: number;
  schedulers?: Record<string, SchedulerUtilization>;
  [device: string]: unknown;
}

export interface Notification {
  type?: "notification";
  at: number;
  kind: string;
  service: string;
  run: string | null;
  message: string;
  data?: Record<string, unknown> | null;
}

export interface Update {
  type: "simulation_update";
  snapshot: boolean;
  run: string;
  state: RunState;
  at: number;
  sequence: number;
  task: LatestTask | null;
  latest_results: Record<string, LatestResult>;
  comparison: ComparisonRow[];
  utilization: UtilizationNow;
  rate: number;
  tasks_sent: number;
  tasks_processed: number;
  lag: Record<string, number>;
  rejected: number;
  spec?: RunSpec;
  notifications?: Notification[];
}

export interface Heartbeat {
  type: "heartbeat";
  at: number;
  run: string | null;
  state: RunState | null;
}

export type ServerMessage =
  | Update
  | Heartbeat
  | (Notification & { type: "notification" })
  | { type: "error"; message: string };
