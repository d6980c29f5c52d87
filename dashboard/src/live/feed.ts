/** The WebSocket to the gateway: connects, merges, notices silence, and comes back by itself. */
import type { RunState, Weights } from "../api/types";
import { createStore, type Store } from "../store";
import { backoff, type Connection, connectionOf, DEAD_AFTER_MS } from "./connection";
import type { ServerMessage } from "./messages";
import { EMPTY, type LiveState, merge } from "./state";

export const UNKNOWN_RUN = 4404;
/** With no run to watch, one may start at any time. */
const LOOK_AGAIN_MS = 4_000;
const PULSE_MS = 1_000;

export interface Link {
  connection: Connection;
  /** Rises with every connection, so that pollers fetch what they missed. */
  epoch: number;
  /** When the next try is made, in ms of the local clock; null while connected. */
  retryAt: number | null;
  unknownRun: boolean;
}

type OpenSocket = (url: string) => WebSocket;

export class Feed {
  readonly live: Store<LiveState> = createStore(EMPTY);
  readonly link: Store<Link> = createStore<Link>({
    connection: "connecting",
    epoch: 0,
    retryAt: null,
    unknownRun: false,
  });

  private socket: WebSocket | null = null;
  private run: string | null = null;
  private weights: Weights | null = null;
  private started = false;
  private open = false;
  private attempts = 0;
  private everConnected = false;
  /** This socket has brought its first snapshot; further ones answer a change of weights. */
  private greeted = false;
  private lastMessageAt = 0;
  private lastUpdateAt = 0;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private pulse: ReturnType<typeof setInterval> | undefined;

  constructor(
    private readonly openSocket: OpenSocket = (url) => new WebSocket(url),
    private readonly address: (run: string | null) => string = socketAddress,
    private readonly random: () => number = Math.random,
    private readonly online: () => boolean = () => navigator.onLine !== false,
  ) {}

  /** Watch a run; null is the newest one. Calling it again with the same run changes nothing. */
  watch(run: string | null): void {
    if (this.started && run === this.run) return;
    this.started = true;
    this.run = run;
    const shown = this.live.get().run;
    if (run !== null && shown !== null && run !== shown) this.live.set(EMPTY);
    this.reconnect();
  }

  /** Drop the socket and open a new one now. */
  reconnect(): void {
    if (!this.started) return;
    this.drop();
    this.attempts = 0;
    this.connect();
    this.pulse ??= setInterval(() => this.check(), PULSE_MS);
  }

  stop(): void {
    this.started = false;
    this.drop();
    clearInterval(this.pulse);
    this.pulse = undefined;
  }

  weigh(weights: Weights): void {
    this.weights = weights;
    this.sendWeights();
  }

  /** What the gateway answered to a command is as true as what its socket says a moment later. */
  answered(run: string, state: RunState): void {
    const live = this.live.get();
    if (live.run === run) this.live.set({ ...live, state });
  }

  private connect(): void {
    clearTimeout(this.retry);
    const socket = this.openSocket(this.address(this.run));
    this.socket = socket;
    this.open = false;
    this.greeted = false;
    this.lastMessageAt = 0;
    socket.onopen = () => {
      if (socket !== this.socket) return;
      this.open = true;
      this.lastMessageAt = Date.now();
      this.sendWeights();
      this.tell({ retryAt: null });
    };
    socket.onmessage = (event) => {
      if (socket === this.socket) this.receive(event.data as string);
    };
    socket.onclose = (event) => {
      if (socket === this.socket) this.lost(event.code);
    };
    this.tell({});
  }

  private receive(text: string): void {
    let message: ServerMessage;
    try {
      message = JSON.parse(text) as ServerMessage;
    } catch {
      return;
    }
    this.lastMessageAt = Date.now();
    if (message.type === "simulation_update") this.lastUpdateAt = this.lastMessageAt;
    const before = this.live.get();
    const after = merge(before, message);
    if (after.gap) {
      this.drop();
      this.lost(0);
      return;
    }
    this.live.set(after);
    if (message.type === "error") return;
    this.attempts = 0;
    this.everConnected = true;
    const first = !this.greeted && message.type === "simulation_update" && message.snapshot;
    this.greeted ||= first;
    this.tell(first ? { epoch: this.link.get().epoch + 1, unknownRun: false } : {});
  }

  private lost(code: number): void {
    this.socket = null;
    this.open = false;
    const unknown = code === UNKNOWN_RUN;
    const delay = unknown ? LOOK_AGAIN_MS : backoff(this.attempts, this.random());
    // Being told that there is no such run is an answer: the gateway is there.
    this.attempts = unknown ? 0 : this.attempts + 1;
    this.retry = setTimeout(() => this.connect(), delay);
    this.tell({ retryAt: Date.now() + delay, unknownRun: unknown });
  }

  private check(): void {
    const silent = Date.now() - this.lastMessageAt;
    if (this.open && this.lastMessageAt > 0 && silent >= DEAD_AFTER_MS) {
      this.drop();
      this.lost(0);
      return;
    }
    this.tell({});
  }

  private drop(): void {
    clearTimeout(this.retry);
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

  private tell(change: Partial<Link>): void {
    const before = this.link.get();
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
    const same = (Object.keys(after) as (keyof Link)[]).every((key) => after[key] === before[key]);
    if (!same) this.link.set(after);
  }
}

function socketAddress(run: string | null): string {
  const { protocol, host } = window.location;
  const query = run ? `?run=${encodeURIComponent(run)}` : "";
  return `${protocol === "https:" ? "wss" : "ws"}://${host}/ws${query}`;
}
