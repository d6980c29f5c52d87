/** What the dashboard knows of a run right now, and how a message changes it. Pure. */
import type { RunSpec, RunState } from "../api/types";
import type {
  ComparisonRow,
  LatestResult,
  LatestTask,
  Notification,
  SchedulerUtilization,
  ServerMessage,
  Update,
} from "./messages";

/** Enough for the live log; the Log view reads older ones from the gateway. */
export const MAX_NOTIFICATIONS = 100;

export interface LiveState {
  run: string | null;
  state: RunState | null;
  spec: RunSpec | null;
  at: number;
  sequence: number | null;
  task: LatestTask | null;
  latestResults: Record<string, LatestResult>;
  comparison: Record<string, ComparisonRow>;
  utilization: Record<string, SchedulerUtilization>;
  rate: number;
  tasksSent: number;
  tasksProcessed: number;
  lag: Record<string, number>;
  rejected: number;
  notifications: Notification[];
  /** Updates were missed: what was merged since may be old; only a new snapshot helps. */
  gap: boolean;
  problem: string | null;
}

export const EMPTY: LiveState = {
  run: null,
  state: null,
  spec: null,
  at: 0,
  sequence: null,
  task: null,
  latestResults: {},
  comparison: {},
  utilization: {},
  rate: 0,
  tasksSent: 0,
  tasksProcessed: 0,
  lag: {},
  rejected: 0,
  notifications: [],
  gap: false,
  problem: null,
};

export function merge(state: LiveState, message: ServerMessage): LiveState {
  switch (message.type) {
    case "simulation_update":
      return message.snapshot ? fromSnapshot(state, message) : changed(state, message);
    case "heartbeat":
      if (state.run !== message.run && state.run !== null && message.run !== null) return state;
      return { ...state, at: message.at, state: message.state ?? state.state, rate: 0 };
    case "notification":
      return { ...state, notifications: withNewest(state.notifications, [message]) };
    case "error":
      return { ...state, problem: message.message };
    default:
      return state;
  }
}

function fromSnapshot(state: LiveState, update: Update): LiveState {
  const sameRun = state.run === update.run;
  const known = sameRun ? state.notifications : [];
  return {
    ...fields(update),
    comparison: byName(update.comparison),
    utilization: update.utilization?.schedulers ?? {},
    latestResults: update.latest_results,
    spec: update.spec ?? (sameRun ? state.spec : null),
    notifications: withNewest(known, update.notifications ?? []),
    gap: false,
    problem: null,
  };
}

function changed(state: LiveState, update: Update): LiveState {
  if (update.run !== state.run) return state;
  const gap = state.sequence !== null && update.sequence !== state.sequence + 1;
  const scheduled = update.utilization?.schedulers;
  return {
    ...state,
    ...fields(update),
    comparison: update.comparison.length
      ? { ...state.comparison, ...byName(update.comparison) }
      : state.comparison,
    utilization: scheduled ? { ...state.utilization, ...scheduled } : state.utilization,
    latestResults: update.latest_results,
    gap: state.gap || gap,
  };
}

function fields(update: Update) {
  return {
    run: update.run,
    state: update.state,
    at: update.at,
    sequence: update.sequence,
    task: update.task,
    rate: update.rate,
    tasksSent: update.tasks_sent,
    tasksProcessed: update.tasks_processed,
    lag: update.lag,
    rejected: update.rejected,
  };
}

function byName(rows: ComparisonRow[]): Record<string, ComparisonRow> {
  return Object.fromEntries(rows.map((row) => [row.name, row]));
}

/** Newest first, each once, bounded. A reconnect repeats some: they are told apart by content. */
function withNewest(known: Notification[], news: Notification[]): Notification[] {
  const seen = new Set<string>();
  const all = [...news, ...known].sort((left, right) => right.at - left.at);
  const kept = all.filter((note) => {
    const key = `${note.at}|${note.kind}|${note.service}|${note.run}|${note.message}`;
    return seen.has(key) ? false : seen.add(key);
  });
  return kept.slice(0, MAX_NOTIFICATIONS);
}
