import { describe, expect, it } from "vitest";
import type { ArenaEvent } from "../../api/types";
import { choices, joined, matching } from "./events";

function event(sequence: number, service = "trainer", message = `event ${sequence}`): ArenaEvent {
  return { sequence, at: sequence, kind: "model", service, run: "r1", message, data: null };
}

describe("pages of events", () => {
  it("join newest first, each event once", () => {
    const all = joined([event(3), event(2)], [event(4), event(3, "gateway")]);
    expect(all.map((one) => one.sequence)).toEqual([4, 3, 2]);
    expect(all[1]?.service).toBe("gateway");
  });

  it("lose the oldest beyond the limit", () => {
    const all = joined([event(1), event(2)], [event(3), event(4)], 3);
    expect(all.map((one) => one.sequence)).toEqual([4, 3, 2]);
  });
});

describe("a filter", () => {
  const events = [event(1, "trainer", "Forest shipped"), event(2, "gateway", "Run started")];

  it("takes service and text, whatever the case", () => {
    expect(matching(events, { service: "gateway", text: "" })).toEqual([events[1]]);
    expect(matching(events, { service: "", text: "FOREST" })).toEqual([events[0]]);
    expect(matching(events, { service: "gateway", text: "forest" })).toEqual([]);
    expect(matching(events, { service: "", text: "" })).toEqual(events);
  });

  it("offers what was seen, and what is chosen", () => {
    expect(choices(["trainer", "gateway", "trainer"], "simulator")).toEqual([
      "gateway",
      "simulator",
      "trainer",
    ]);
    expect(choices([], "")).toEqual([]);
  });
});
