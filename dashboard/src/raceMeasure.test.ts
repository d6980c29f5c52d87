import { describe, expect, it } from "vitest";
import { row } from "./live/samples";
import { bestCompetitor, inOrder } from "./raceMeasure";
import { CLAIRVOYANT, ORACLE } from "./schedulers";

const RACE = [
  row(ORACLE, { avg_time: 1, avg_turnaround: 9 }),
  row("idle", { tasks: 0, avg_time: 0, avg_turnaround: 0 }),
  row("quick", { avg_time: 2, avg_turnaround: 8 }),
  row("short", { avg_time: 3, avg_turnaround: 4 }),
  row(CLAIRVOYANT, { avg_time: 3, avg_turnaround: 3 }),
];

describe("the race", () => {
  it("has the shortest turnaround or execution time first and schedulers without results last", () => {
    const names = (measure: "turnaround" | "time") => inOrder(RACE, measure).map((each) => each.name);
    expect(names("turnaround")).toEqual([CLAIRVOYANT, "short", "quick", ORACLE, "idle"]);
    expect(names("time")).toEqual([ORACLE, "quick", CLAIRVOYANT, "short", "idle"]);
  });

  it("is won by a competitor, not by a reference", () => {
    expect(bestCompetitor(RACE, "turnaround")?.name).toBe("short");
    expect(bestCompetitor(RACE, "time")?.name).toBe("quick");
    expect(bestCompetitor([row(ORACLE)], "time")).toBeUndefined();
  });
});
