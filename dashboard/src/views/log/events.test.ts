import { describe, expect, it } from "vitest";
import type { StoredEvent } from "../../api/types";
import { choices, filterEvents, mergeEvents } from "./events";

function event(sequence: number, service = "trainer", message = `event ${sequence}`): StoredEvent {
  return { sequence, at: sequence, kind: "model", service, run: "r1", message, data: {} };
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

describe("a filter", () => {
  const events = [event(1, "trainer", "Forest shipped"), event(2, "gateway", "Run started")];

  it("matches service and text, ignoring case", () => {
    expect(filterEvents(events, { service: "gateway", text: "" })).toEqual([events[1]]);
    expect(filterEvents(events, { service: "", text: "FOREST" })).toEqual([events[0]]);
    expect(filterEvents(events, { service: "gateway", text: "forest" })).toEqual([]);
    expect(filterEvents(events, { service: "", text: "" })).toEqual(events);
  });

  it("offers the loaded values and the selected one", () => {
    expect(choices(["trainer", "gateway", "trainer"], "simulator")).toEqual(["gateway", "simulator", "trainer"]);
    expect(choices([], "")).toEqual([]);
  });
});
