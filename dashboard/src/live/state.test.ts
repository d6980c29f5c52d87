import { describe, expect, it } from "vitest";
import { ORACLE } from "../schedulers";
import { notification, row, snapshot, update } from "./samples";
import { EMPTY, MAX_NOTIFICATIONS, merge } from "./state";

const first = snapshot({ comparison: [row(ORACLE), row("greedy", { rank: 2 })] });
const watching = merge(EMPTY, first);

describe("a snapshot", () => {
  it("replaces everything, including the schedulers", () => {
    const next = merge(watching, snapshot({ sequence: 9, run: "r2", comparison: [row("random")] }));
    expect(Object.keys(next.comparison)).toEqual(["random"]);
    expect(next.run).toBe("r2");
    expect(next.sequence).toBe(9);
  });

  it("of another run drops the old notifications", () => {
    const noted = merge(watching, notification(5));
    const next = merge(noted, snapshot({ run: "r2", rate: 7, notifications: [notification(6)] }));
    expect(next.notifications.map((each) => each.at)).toEqual([6]);
    expect(next.rate).toBe(7);
  });

  it("counts notifications that say the same again", () => {
    let state = merge(watching, notification(5, "batch 5", "batch #"));
    state = merge(merge(state, notification(6, "run", "run")), notification(7, "batch 7", "batch #"));
    expect(state.notifications.map((each) => [each.message, each.count])).toEqual([
      ["batch 7", 2],
      ["run", 1],
    ]);
  });

  it("drops the rows of a suspended scheduler until it takes part again", () => {
    const both = merge(watching, snapshot({ comparison: [row("greedy"), row("own")] }));
    const suspended = { own: { reason: "on fire", batch: 3, at: 5, left_out: false } };
    const after = merge(both, update({ suspended }));
    expect(Object.keys(after.comparison)).toEqual(["greedy"]);
    const again = merge(after, update({ sequence: 3, comparison: [row("own")] }));
    expect(Object.keys(again.comparison)).toEqual(["greedy", "own"]);
  });

  it("after a reconnect repeats no notification", () => {
    const noted = merge(merge(watching, notification(5)), notification(6));
    const next = merge(noted, snapshot({ notifications: [notification(7), notification(6), notification(5)] }));
    expect(next.notifications.map((each) => each.at)).toEqual([7, 6, 5]);
  });
});

describe("an update", () => {
  it("changes only the schedulers it names", () => {
    const next = merge(watching, update({ comparison: [row("greedy", { tasks: 11 })], tasks_processed: 11 }));
    expect(next.comparison.greedy?.tasks).toBe(11);
    expect(next.comparison.oracle).toBe(watching.comparison.oracle);
    expect(next.tasksProcessed).toBe(11);
  });

  it("without schedulers keeps the same comparison object", () => {
    expect(merge(watching, update()).comparison).toBe(watching.comparison);
  });

  it("of another run is ignored", () => {
    expect(merge(watching, update({ run: "r0" }))).toBe(watching);
  });

  it("that skips a sequence number is a gap", () => {
    expect(merge(watching, update({ sequence: 2 })).gap).toBe(false);
    expect(merge(watching, update({ sequence: 3 })).gap).toBe(true);
  });
});

describe("the state", () => {
  it("is bounded, however long the page is open", () => {
    let state = watching;
    for (let at = 1; at <= 500; at += 1) {
      state = merge(merge(state, notification(at)), update({ sequence: at + 1, rate: at }));
    }
    expect(state.notifications).toHaveLength(MAX_NOTIFICATIONS);
    expect(state.notifications[0]?.at).toBe(500);
    expect(state.rate).toBe(500);
  });

  it("keeps its rows at a heartbeat, which has only the time and the state", () => {
    const next = merge(watching, { type: "heartbeat", at: 200, run: "r1", state: "paused" });
    expect(next.state).toBe("paused");
    expect(next.at).toBe(200);
    expect(next.rate).toBe(0);
    expect(next.comparison).toBe(watching.comparison);
  });
});
