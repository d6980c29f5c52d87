import { describe, expect, it } from "vitest";
import { changed, format, parse, viewAddress } from "./url";
import { formatWeights, parseWeights, shares } from "./weights";

describe("the address", () => {
  it("round-trips its parameters", () => {
    const parameters = { view: "task", run: "1116-0815-a", task: "12", note: "a & b" };
    expect(parse(format(parameters).slice(1))).toEqual(parameters);
  });

  it("starts with the view and the run", () => {
    expect(format({ scheduler: "greedy", run: "r", view: "arena" })).toBe("/?view=arena&run=r&scheduler=greedy");
    expect(format({})).toBe("/");
  });

  it("drops empty parameters", () => {
    expect(parse("?view=arena&run=")).toEqual({ view: "arena" });
    expect(changed({ run: "r", before: "9" }, { before: null, status: "ok" })).toEqual({ run: "r", status: "ok" });
  });

  it("keeps the run and what counts, but no filter, when the view changes", () => {
    const kept = { run: "r", weights: "1,1,0,0", by: "time" };
    const here = { ...kept, view: "arena", before: "100", status: "failed" };
    expect(viewAddress(here, "task", { task: 7 })).toEqual({ ...kept, view: "task", task: "7" });
  });
});

describe("weights in the address", () => {
  it("round-trip", () => {
    const weights = { turnaround: 50, time: 60, energy: 30, cost: 10 };
    expect(parseWeights(formatWeights(weights))).toEqual(weights);
  });

  it("of an older version are time, energy and cost", () => {
    expect(parseWeights("60,30,10")).toEqual({ turnaround: 0, time: 60, energy: 30, cost: 10 });
  });

  it("become shares", () => {
    const weights = { turnaround: 60, time: 0, energy: 30, cost: 30 };
    expect(shares(weights)).toEqual({ turnaround: 0.5, time: 0, energy: 0.25, cost: 0.25 });
  });

  it("fall back to turnaround when they are invalid", () => {
    for (const text of [null, "", "1,2", "0,0,0", "0,0,0,0", "1,x,2", "1,1,-1,1", "101,0,0,0", "1,1,1,1,1"]) {
      expect(parseWeights(text)).toEqual({ turnaround: 100, time: 0, energy: 0, cost: 0 });
    }
  });
});
