import { describe, expect, it } from "vitest";
import { backoff, connectionOf, type Observations } from "./connection";

const fresh: Observations = {
  open: true,
  online: true,
  attempts: 0,
  everConnected: true,
  unknownRun: false,
  lastMessageAt: 100_000,
  lastUpdateAt: 100_000,
  now: 100_500,
};

const stateOf = (change: Partial<Observations>) => connectionOf({ ...fresh, ...change });

describe("the connection", () => {
  it("is live while updates come", () => {
    expect(stateOf({})).toBe("live");
  });

  it("is quiet when only heartbeats come", () => {
    expect(stateOf({ now: 110_000, lastMessageAt: 109_000 })).toBe("quiet");
  });

  it("is quiet when the gateway has no such run", () => {
    expect(stateOf({ open: false, everConnected: false, unknownRun: true })).toBe("quiet");
  });

  it("is stale when an open socket is silent", () => {
    expect(stateOf({ now: 105_900 })).toBe("quiet");
    expect(stateOf({ now: 106_000 })).toBe("stale");
  });

  it("connects once, and reconnects afterwards", () => {
    expect(stateOf({ open: false, everConnected: false })).toBe("connecting");
    expect(stateOf({ open: false })).toBe("reconnecting");
  });

  it("is offline when the browser is, or after many attempts", () => {
    expect(stateOf({ online: false })).toBe("offline");
    expect(stateOf({ open: false, attempts: 4 })).toBe("reconnecting");
    expect(stateOf({ open: false, attempts: 5 })).toBe("offline");
  });
});

describe("the delay before the next attempt", () => {
  it("doubles up to a limit, and half of it is random", () => {
    expect([0, 1, 2, 3].map((attempt) => backoff(attempt, 1))).toEqual([500, 1000, 2000, 4000]);
    expect(backoff(3, 0)).toBe(2000);
    expect(backoff(50, 1)).toBe(15_000);
  });
});
