import { describe, expect, it } from "vitest";
import type { StoredEvent } from "./api/types";
import { choices, groupEvents, mergeEvents } from "./events";

function event(sequence: number, service = "trainer", group = `event ${sequence}`): StoredEvent {
  const message = `event ${sequence}`;
  return { sequence, at: sequence, kind: "model", service, run: "r1", message, data: {}, level: "info", group };
}

describe("pages of events", () => {
  it("are merged newest first, without duplicates", () => {
    const all = mergeEvents([event(3), event(2)], [event(4), event(3, "gateway")]);
    expect(all.map((one) => one.sequence)).toEqual([4, 3, 2]);
    expect(all[1]?.service).toBe("gateway");
  });

  it("lose the oldest beyond the limit", () => {
    const all = mergeEvents([event(1), event(2)], [event(3), event(4)], 3);
    expect(all.map((one) => one.sequence)).toEqual([4, 3, 2]);
  });
});

describe("groups of events", () => {
  it("are one line with a count, where the newest of them is", () => {
    const events = [event(5, "trainer", "forest"), event(4, "gateway"), event(3, "trainer", "forest")];
    const groups = groupEvents(events);
    expect(groups.map((one) => [one.newest.sequence, one.count, one.since])).toEqual([
      [5, 2, 3],
      [4, 1, 4],
    ]);
    expect(groups[0]?.members.map((one) => one.sequence)).toEqual([5, 3]);
    expect(groupEvents(events, "gateway").map((one) => one.newest.sequence)).toEqual([4]);
  });
});

describe("a filter", () => {
  it("offers the loaded values and the selected one", () => {
    expect(choices(["trainer", "gateway", "trainer"], "simulator")).toEqual(["gateway", "simulator", "trainer"]);
    expect(choices([], "")).toEqual([]);
  });
});
