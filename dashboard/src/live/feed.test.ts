import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { ServerMessage } from "../api/types";
import { ORACLE } from "../schedulers";
import { Feed } from "./feed";
import { row, snapshot, update } from "./samples";

class Socket {
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: string }) => void) | null = null;
  onclose: ((event: { code: number }) => void) | null = null;
  sent: string[] = [];
  closed = false;

  constructor(readonly url: string) {}

  send(text: string) {
    this.sent.push(text);
  }

  close() {
    this.closed = true;
  }

  receive(message: ServerMessage) {
    this.onmessage?.({ data: JSON.stringify(message) });
  }
}

let sockets: Socket[];
let feed: Feed;
const newest = () => sockets.at(-1) as Socket;
const first = snapshot({ comparison: [row(ORACLE)] });

beforeEach(() => {
  vi.useFakeTimers();
  sockets = [];
  feed = new Feed(
    (url) => {
      const socket = new Socket(url);
      sockets.push(socket);
      return socket as unknown as WebSocket;
    },
    (run) => `ws?run=${run ?? ""}`,
    () => 0.5,
    () => true,
  );
});

afterEach(() => {
  feed.stop();
  vi.useRealTimers();
});

function connect() {
  feed.watch("r1");
  newest().onopen?.();
  newest().receive(first);
}

describe("the feed", () => {
  it("is live after the first snapshot", () => {
    connect();
    expect(newest().url).toBe("ws?run=r1");
    expect(feed.link.getState()).toMatchObject({ connection: "live", epoch: 1, retryAt: null });
    expect(feed.live.getState().comparison.oracle?.tasks).toBe(10);
  });

  it("does not count the snapshot that answers new weights as a connection", () => {
    connect();
    newest().receive({ ...first, sequence: 4 });
    newest().receive(update({ sequence: 5 }));
    expect(feed.link.getState().epoch).toBe(1);
    expect(feed.live.getState().sequence).toBe(5);
  });

  it("reconnects after a loss, and keeps the old state meanwhile", () => {
    connect();
    newest().onclose?.({ code: 1006 });
    expect(feed.link.getState().connection).toBe("reconnecting");
    expect(feed.live.getState().run).toBe("r1");
    vi.advanceTimersByTime(400);
    expect(sockets).toHaveLength(2);
    newest().onopen?.();
    newest().receive(first);
    expect(feed.link.getState()).toMatchObject({ connection: "live", epoch: 2 });
  });

  it("is offline after five failed attempts, and goes on trying", () => {
    connect();
    for (let time = 0; time < 5; time += 1) {
      newest().onclose?.({ code: 1006 });
      vi.advanceTimersByTime(15_000);
    }
    expect(feed.link.getState().connection).toBe("offline");
    newest().onopen?.();
    newest().receive(first);
    expect(feed.link.getState().connection).toBe("live");
  });

  it("is stale in silence, then opens a new socket", () => {
    connect();
    vi.advanceTimersByTime(7_000);
    expect(feed.link.getState().connection).toBe("stale");
    vi.advanceTimersByTime(9_000);
    expect(sockets[0]?.closed).toBe(true);
    expect(sockets).toHaveLength(2);
  });

  it("reconnects for a new snapshot when an update is missing", () => {
    connect();
    newest().receive(update({ sequence: 5 }));
    vi.advanceTimersByTime(500);
    expect(sockets).toHaveLength(2);
    expect(sockets[0]?.closed).toBe(true);
    expect(feed.live.getState().sequence).toBe(1);
  });

  it("sends the weights at once and after every reconnect", () => {
    connect();
    feed.setWeights({ turnaround: 4, time: 1, energy: 2, cost: 3 });
    const message = JSON.stringify({ type: "weights", turnaround: 4, time: 1, energy: 2, cost: 3 });
    expect(newest().sent).toEqual([message]);
    newest().onclose?.({ code: 1006 });
    vi.advanceTimersByTime(500);
    newest().onopen?.();
    expect(newest().sent).toEqual([message]);
  });

  it("tells an unknown run from a lost connection, and retries", () => {
    feed.watch("missing");
    newest().onopen?.();
    newest().receive({ type: "error", message: "no run missing" });
    newest().onclose?.({ code: 4404 });
    expect(feed.link.getState()).toMatchObject({ unknownRun: true, connection: "quiet" });
    vi.advanceTimersByTime(4_000);
    expect(sockets).toHaveLength(2);
  });

  it("clears the old run while it waits for another", () => {
    connect();
    feed.watch("r2");
    expect(feed.live.getState().run).toBeNull();
    sockets[0]?.receive(update({ sequence: 2 }));
    expect(feed.live.getState().run).toBeNull();
  });

  it("ignores a message that is not JSON", () => {
    connect();
    newest().onmessage?.({ data: "{" });
    expect(feed.link.getState().connection).toBe("live");
  });
});
