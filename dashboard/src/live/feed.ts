/** The WebSocket to the gateway: merges its messages into one state, detects silence, reconnects. */

import { shallow } from "zustand/shallow";
import { createStore, type StoreApi } from "zustand/vanilla";
import type { Notification, RunState, ServerMessage, Weights } from "../api/types";
import { backoff, type Connection, connectionOf, DEAD_AFTER_MS } from "./connection";
import { EMPTY, type LiveState, MAX_NOTIFICATIONS, merge, withNotifications } from "./state";

export const UNKNOWN_RUN = 4404;
/** When there is no such run yet. */
const UNKNOWN_RUN_RETRY_MS = 4_000;
const CHECK_MS = 1_000;
/** Notifications are shown together this often: no rate of events may starve the page. */
const NOTIFICATION_MS = 250;

/** The state of the connection. */
export interface Link {
  connection: Connection;
  /** The number of connections so far: after a new one, polled data is fetched again. */
  epoch: number;
  /** Time of the next attempt, in ms of the local clock; null while connected. */
  retryAt: number | null;
  unknownRun: boolean;
}

type OpenSocket = (url: string) => WebSocket;

export class Feed {
  readonly live: StoreApi<LiveState> = createStore(() => EMPTY);
  readonly link: StoreApi<Link> = createStore(() => ({
    connection: "connecting",
    epoch: 0,
    retryAt: null,
    unknownRun: false,
  }));

  private socket: WebSocket | null = null;
  private run: string | null = null;
  private weights: Weights | null = null;
  private started = false;
  private open = false;
  private attempts = 0;
  private everConnected = false;
  /** This socket has sent its first snapshot; later ones answer a change of weights. */
  private hasSnapshot = false;
  private lastMessageAt = 0;
  private lastUpdateAt = 0;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private checks: ReturnType<typeof setInterval> | undefined;
  private newNotifications: Notification[] = [];
  private notifying: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly openSocket: OpenSocket = (url) => new WebSocket(url),
    private readonly address: (run: string | null) => string = socketAddress,
    private readonly random: () => number = Math.random,
    private readonly online: () => boolean = () => navigator.onLine !== false,
  ) {}

  /** Watches a run; null is the newest one. */
  watch(run: string | null): void {
    if (this.started && run === this.run) return;
    this.started = true;
    this.run = run;
    const shown = this.live.getState().run;
    if (run !== null && shown !== null && run !== shown) this.live.setState(EMPTY, true);
    this.reconnect();
  }

  /** Closes the socket and opens a new one now. */
  reconnect(): void {
    if (!this.started) return;
    this.closeSocket();
    this.attempts = 0;
    this.connect();
    this.checks ??= setInterval(() => this.check(), CHECK_MS);
  }

  stop(): void {
    this.started = false;
    this.closeSocket();
    clearInterval(this.checks);
    this.checks = undefined;
  }

  setWeights(weights: Weights): void {
    this.weights = weights;
    this.sendWeights();
  }

  /** The answer to a command, which comes earlier than the WebSocket's update. */
  setRunState(run: string, state: RunState): void {
    if (this.live.getState().run === run) this.live.setState({ state });
  }

  private connect(): void {
    clearTimeout(this.retry);
    const socket = this.openSocket(this.address(this.run));
    this.socket = socket;
    this.open = false;
    this.hasSnapshot = false;
    this.lastMessageAt = 0;
    socket.onopen = () => {
      if (socket !== this.socket) return;
      this.open = true;
      this.lastMessageAt = Date.now();
      this.sendWeights();
      this.updateLink({ retryAt: null });
    };
    socket.onmessage = (event) => {
      if (socket === this.socket) this.receive(event.data as string);
    };
    socket.onclose = (event) => {
      if (socket === this.socket) this.handleLoss(event.code);
    };
    this.updateLink({});
  }

  private receive(text: string): void {
    let message: ServerMessage;
    try {
      message = JSON.parse(text) as ServerMessage;
    } catch {
      return;
    }
    this.lastMessageAt = Date.now();
    if (message.type === "notification") {
      this.notify(message);
      return;
    }
    if (message.type === "simulation_update") this.lastUpdateAt = this.lastMessageAt;
    const before = this.live.getState();
    const after = merge(before, message);
    if (after.gap) {
      this.closeSocket();
      this.handleLoss(0);
      return;
    }
    this.live.setState(after, true);
    if (message.type === "error") return;
    this.attempts = 0;
    this.everConnected = true;
    const first = !this.hasSnapshot && message.type === "simulation_update" && message.snapshot;
    this.hasSnapshot ||= first;
    this.updateLink(first ? { epoch: this.link.getState().epoch + 1, unknownRun: false } : {});
  }

  private notify(message: Notification): void {
    this.newNotifications.push(message);
    if (this.newNotifications.length > MAX_NOTIFICATIONS) this.newNotifications.shift();
    this.notifying ??= setTimeout(() => this.showNotifications(), NOTIFICATION_MS);
  }

  private showNotifications(): void {
    const added = this.newNotifications;
    this.newNotifications = [];
    this.notifying = undefined;
    this.live.setState((state) => withNotifications(state, added), true);
  }

  private handleLoss(code: number): void {
    this.socket = null;
    this.open = false;
    const unknown = code === UNKNOWN_RUN;
    const delay = unknown ? UNKNOWN_RUN_RETRY_MS : backoff(this.attempts, this.random());
    // "No such run" is an answer: the gateway can be reached.
    this.attempts = unknown ? 0 : this.attempts + 1;
    this.retry = setTimeout(() => this.connect(), delay);
    this.updateLink({ retryAt: Date.now() + delay, unknownRun: unknown });
  }

  private check(): void {
    const silent = Date.now() - this.lastMessageAt;
    if (this.open && this.lastMessageAt > 0 && silent >= DEAD_AFTER_MS) {
      this.closeSocket();
      this.handleLoss(0);
      return;
    }
    this.updateLink({});
  }

  private closeSocket(): void {
    clearTimeout(this.retry);
    clearTimeout(this.notifying);
    this.notifying = undefined;
    this.newNotifications = []; // the next snapshot has them
    const socket = this.socket;
    this.socket = null;
    this.open = false;
    socket?.close();
  }

  private sendWeights(): void {
    if (this.weights && this.socket && this.open) {
      this.socket.send(JSON.stringify({ type: "weights", ...this.weights }));
    }
  }

  private updateLink(change: Partial<Link>): void {
    const before = this.link.getState();
    const connection = connectionOf({
      open: this.open,
      online: this.online(),
      attempts: this.attempts,
      everConnected: this.everConnected,
      unknownRun: change.unknownRun ?? before.unknownRun,
      lastMessageAt: this.lastMessageAt,
      lastUpdateAt: this.lastUpdateAt,
      now: Date.now(),
    });
    const after = { ...before, ...change, connection };
    if (!shallow(before, after)) this.link.setState(after);
  }
}

function socketAddress(run: string | null): string {
  const { protocol, host } = window.location;
  const query = run ? `?run=${encodeURIComponent(run)}` : "";
  return `${protocol === "https:" ? "wss" : "ws"}://${host}/ws${query}`;
}
