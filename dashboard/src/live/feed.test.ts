import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Feed } from "./feed";
import type { ServerMessage } from "./messages";
import { row, update } from "./samples";

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

  say(message: ServerMessage) {
    this.onmessage?.({ data: JSON.stringify(message) });
  }
}

let sockets: Socket[];
let feed: Feed;
const newest = () => sockets.at(-1) as Socket;
const snapshot = update({ snapshot: true, sequence: 1, comparison: [row("oracle")] });

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
  newest().say(snapshot);
}

describe("the feed", () => {
  it("is live after the first snapshot", () => {
    connect();
    expect(newest().url).toBe("ws?run=r1");
    expect(feed.link.get()).toMatchObject({ connection: "live", epoch: 1, retryAt: null });
    expect(feed.live.get().comparison["oracle"]?.tasks).toBe(10);
  });

  it("takes the snapshot that answers new weights for no new connection", () => {
    connect();
    newest().say({ ...snapshot, sequence: 4 });
    newest().say(update({ sequence: 5 }));
    expect(feed.link.get().epoch).toBe(1);
    expect(feed.live.get().sequence).toBe(5);
  });

  it("comes back after a loss, keeps the old picture meanwhile, and counts the new epoch", () => {
    connect();
    newest().onclose?.({ code: 1006 });
    expect(feed.link.get().connection).toBe("reconnecting");
    expect(feed.live.get().run).toBe("r1");
    vi.advanceTimersByTime(400);
    expect(sockets).toHaveLength(2);
    newest().onopen?.();
    newest().say(snapshot);
    expect(feed.link.get()).toMatchObject({ connection: "live", epoch: 2 });
  });

  it("says offline after five tries in vain, and still tries", () => {
    connect();
    for (let time = 0; time < 5; time += 1) {
      newest().onclose?.({ code: 1006 });
      vi.advanceTimersByTime(15_000);
    }
    expect(feed.link.get().connection).toBe("offline");
    newest().onopen?.();
    newest().say(snapshot);
    expect(feed.link.get().connection).toBe("live");
  });

  it("turns stale in silence, then gives the dead socket up", () => {
    connect();
    vi.advanceTimersByTime(7_000);
    expect(feed.link.get().connection).toBe("stale");
    vi.advanceTimersByTime(9_000);
    expect(sockets[0]?.closed).toBe(true);
    expect(sockets).toHaveLength(2);
  });

  it("asks for a new snapshot when an update is missing", () => {
    connect();
    newest().say(update({ sequence: 5 }));
    vi.advanceTimersByTime(500);
    expect(sockets).toHaveLength(2);
    expect(sockets[0]?.closed).toBe(true);
    expect(feed.live.get().sequence).toBe(1);
  });

  it("sends the weights now and again after every reconnect", () => {
    connect();
    feed.weigh({ time: 1, energy: 2, cost: 3 });
    const said = JSON.stringify({ type: "weights", time: 1, energy: 2, cost: 3 });
    expect(newest().sent).toEqual([said]);
    newest().onclose?.({ code: 1006 });
    vi.advanceTimersByTime(500);
    newest().onopen?.();
    expect(newest().sent).toEqual([said]);
  });

  it("knows an unknown run from a lost line, and keeps looking", () => {
    feed.watch("nobody");
    newest().onopen?.();
    newest().say({ type: "error", message: "no run nobody" });
    newest().onclose?.({ code: 4404 });
    expect(feed.link.get()).toMatchObject({ unknownRun: true, connection: "quiet" });
    vi.advanceTimersByTime(4_000);
    expect(sockets).toHaveLength(2);
  });

  it("shows nothing of the old run while it waits for another", () => {
    connect();
    feed.watch("r2");
    expect(feed.live.get().run).toBeNull();
    sockets[0]?.say(update({ sequence: 2 }));
    expect(feed.live.get().run).toBeNull();
  });

  it("ignores what it cannot read", () => {
    connect();
    newest().onmessage?.({ data: "{" });
    expect(feed.link.get().connection).toBe("live");
  });
});
