import { describe, expect, it } from "vitest";
import { note, row, update } from "./samples";
import { EMPTY, MAX_NOTIFICATIONS, merge } from "./state";

const snapshot = update({ snapshot: true, sequence: 1, comparison: [row("oracle"), row("greedy", { rank: 2 })] });
const watching = merge(EMPTY, snapshot);

describe("a snapshot", () => {
  it("replaces everything, also who competes", () => {
    const next = merge(watching, update({ snapshot: true, sequence: 9, run: "r2", comparison: [row("random")] }));
    expect(Object.keys(next.comparison)).toEqual(["random"]);
    expect(next.run).toBe("r2");
    expect(next.sequence).toBe(9);
  });

  it("of another run drops the old run's notes", () => {
    const noted = merge(watching, note(5));
    const next = merge(noted, update({ snapshot: true, run: "r2", rate: 7, notifications: [note(6)] }));
    expect(next.notifications.map((each) => each.at)).toEqual([6]);
    expect(next.rate).toBe(7);
  });

  it("after a reconnect repeats no note", () => {
    const noted = merge(merge(watching, note(5)), note(6));
    const next = merge(noted, update({ snapshot: true, notifications: [note(7), note(6), note(5)] }));
    expect(next.notifications.map((each) => each.at)).toEqual([7, 6, 5]);
  });
});

describe("a change", () => {
  it("touches only the schedulers it names", () => {
    const next = merge(watching, update({ comparison: [row("greedy", { tasks: 11 })], tasks_processed: 11 }));
    expect(next.comparison["greedy"]?.tasks).toBe(11);
    expect(next.comparison["oracle"]).toBe(watching.comparison["oracle"]);
    expect(next.tasksProcessed).toBe(11);
  });

  it("without schedulers keeps the very same table", () => {
    expect(merge(watching, update()).comparison).toBe(watching.comparison);
  });

  it("of another run is not for this screen", () => {
    expect(merge(watching, update({ run: "r0" }))).toBe(watching);
  });

  it("that skips a number tells of the gap", () => {
    expect(merge(watching, update({ sequence: 2 })).gap).toBe(false);
    expect(merge(watching, update({ sequence: 3 })).gap).toBe(true);
  });
});

describe("what is kept", () => {
  it("is bounded, however long the page stays open", () => {
    let state = watching;
    for (let at = 1; at <= 500; at += 1) {
      state = merge(merge(state, note(at)), update({ sequence: at + 1, rate: at }));
    }
    expect(state.notifications).toHaveLength(MAX_NOTIFICATIONS);
    expect(state.notifications[0]?.at).toBe(500);
    expect(state.rate).toBe(500);
  });

  it("survives a heartbeat, which only brings the time and the state", () => {
    const next = merge(watching, { type: "heartbeat", at: 200, run: "r1", state: "paused" });
    expect(next.state).toBe("paused");
    expect(next.at).toBe(200);
    expect(next.rate).toBe(0);
    expect(next.comparison).toBe(watching.comparison);
  });
});
