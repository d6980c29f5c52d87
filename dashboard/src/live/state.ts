/** The current state of the watched run, and how each message changes it. Pure functions. */
import type {
  ComparisonRow,
  DeviceType,
  LatestResult,
  LatestTask,
  Notification,
  RunSpec,
  RunState,
  SchedulerUtilization,
  ServerMessage,
  Snapshot,
  SuspendedScheduler,
  Update,
} from "../api/types";

/** For the live log; the Log view reads older ones from the gateway. */
export const MAX_NOTIFICATIONS = 100;

export interface LiveState {
  run: string | null;
  state: RunState | null;
  spec: RunSpec | null;
  /** The device types of the cluster. */
  types: DeviceType[];
  at: number;
  sequence: number | null;
  task: LatestTask | null;
  latestResults: Record<string, LatestResult>;
  comparison: Record<string, ComparisonRow>;
  utilization: Record<string, SchedulerUtilization>;
  rate: number;
  tasksSent: number;
  tasksProcessed: number;
  /** Schedulers that keep failing, by name: the run goes on without them. */
  suspended: Record<string, SuspendedScheduler>;
  /** The learners whose first models the run waits for. */
  pretraining: string[];
  /** The number of schedulers that learn. */
  learners: number;
  lag: Record<string, number>;
  rejected: number;
  notifications: Notification[];
  /** An update is missing: only a new snapshot makes the state correct again. */
  gap: boolean;
  problem: string | null;
}

export const EMPTY: LiveState = {
  run: null,
  state: null,
  spec: null,
  types: [],
  at: 0,
  sequence: null,
  task: null,
  latestResults: {},
  comparison: {},
  utilization: {},
  rate: 0,
  tasksSent: 0,
  tasksProcessed: 0,
  suspended: {},
  pretraining: [],
  learners: 0,
  lag: {},
  rejected: 0,
  notifications: [],
  gap: false,
  problem: null,
};

export function merge(state: LiveState, message: ServerMessage): LiveState {
  switch (message.type) {
    case "simulation_update":
      return message.snapshot ? withSnapshot(state, message) : withUpdate(state, message);
    case "heartbeat":
      if (state.run !== message.run && state.run !== null && message.run !== null) return state;
      return { ...state, at: message.at, state: message.state ?? state.state, rate: 0 };
    case "notification":
      return withNotifications(state, [message]);
    case "error":
      return { ...state, problem: message.message };
    default:
      return state;
  }
}

function withSnapshot(state: LiveState, update: Snapshot): LiveState {
  const known = state.run === update.run ? state.notifications : [];
  return {
    ...fields(update),
    comparison: byName(update.comparison),
    utilization: update.utilization.schedulers,
    latestResults: update.latest_results,
    spec: update.spec,
    types: update.types,
    notifications: merged(known, update.notifications),
    gap: false,
    problem: null,
  };
}

function withUpdate(state: LiveState, update: Update): LiveState {
  if (update.run !== state.run) return state;
  const gap = state.sequence !== null && update.sequence !== state.sequence + 1;
  return {
    ...state,
    ...fields(update),
    comparison: without(
      update.comparison.length ? { ...state.comparison, ...byName(update.comparison) } : state.comparison,
      update.suspended,
    ),
    utilization: without({ ...state.utilization, ...update.utilization.schedulers }, update.suspended),
    latestResults: update.latest_results,
    gap: state.gap || gap,
  };
}

function fields(update: Update | Snapshot) {
  return {
    run: update.run,
    state: update.state,
    at: update.at,
    sequence: update.sequence,
    task: update.task,
    rate: update.rate ?? 0,
    tasksSent: update.tasks_sent,
    tasksProcessed: update.tasks_processed,
    suspended: update.suspended,
    pretraining: update.pretraining,
    learners: update.learners,
    lag: update.lag,
    rejected: update.rejected,
  };
}

function byName(rows: ComparisonRow[]): Record<string, ComparisonRow> {
  return Object.fromEntries(rows.map((row) => [row.name, row]));
}

export function withNotifications(state: LiveState, added: Notification[]): LiveState {
  return { ...state, notifications: merged(state.notifications, added) };
}

/** Newest first. Events that say the same again are one with a count; a reconnect brings some twice. */
function merged(known: Notification[], added: Notification[]): Notification[] {
  const groups = new Map<string, Notification>();
  for (const note of [...known, ...added].sort((left, right) => left.at - right.at)) {
    const before = groups.get(note.group);
    if (before && before.at === note.at && before.message === note.message) continue;
    groups.delete(note.group);
    groups.set(note.group, before ? { ...note, count: note.count + before.count } : note);
  }
  return [...groups.values()].reverse().slice(0, MAX_NOTIFICATIONS);
}

/** A suspended scheduler is compared with nobody. */
function without<T>(of: Record<string, T>, suspended: Record<string, unknown>): Record<string, T> {
  const names = Object.keys(of);
  if (!names.some((name) => name in suspended)) return of;
  return Object.fromEntries(names.filter((name) => !(name in suspended)).map((name) => [name, of[name] as T]));
}
