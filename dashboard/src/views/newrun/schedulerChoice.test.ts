import { describe, expect, it } from "vitest";
import { ORACLE } from "../../schedulers";
import { selectionOf, toggled } from "./schedulerChoice";

const DEPLOYED = ["greedy", ORACLE, "random"];

describe("selected schedulers", () => {
  it("are all until one is removed", () => {
    expect(toggled(undefined, DEPLOYED, "random")).toEqual(["greedy", ORACLE]);
  });

  it("are in the order of deployment", () => {
    expect(toggled(["random"], DEPLOYED, "greedy")).toEqual(["greedy", "random"]);
  });

  it("need no list when all are selected again", () => {
    expect(toggled([ORACLE, "random"], DEPLOYED, "greedy")).toBeUndefined();
  });

  it("that are not deployed can be removed", () => {
    expect(toggled(["greedy", "gone"], DEPLOYED, "gone")).toEqual(["greedy"]);
  });

  it("of an empty or invalid list are all", () => {
    expect(selectionOf([])).toBeUndefined();
    expect(selectionOf("greedy")).toBeUndefined();
    expect(selectionOf(["greedy"])).toEqual(["greedy"]);
  });
});
