import { describe, expect, it } from "vitest";
import { chosenOf, toggled } from "./competitors";

const DEPLOYED = ["greedy", "oracle", "random"];

describe("competitors", () => {
  it("are everybody until one is unticked", () => {
    expect(toggled(undefined, DEPLOYED, "random")).toEqual(["greedy", "oracle"]);
  });

  it("come back in the order in which they are deployed", () => {
    expect(toggled(["random"], DEPLOYED, "greedy")).toEqual(["greedy", "random"]);
  });

  it("need no list when all are ticked again", () => {
    expect(toggled(["oracle", "random"], DEPLOYED, "greedy")).toBeUndefined();
  });

  it("that are not deployed can be unticked", () => {
    expect(toggled(["greedy", "gone"], DEPLOYED, "gone")).toEqual(["greedy"]);
  });

  it("of an empty or odd list are everybody", () => {
    expect(chosenOf([])).toBeUndefined();
    expect(chosenOf("greedy")).toBeUndefined();
    expect(chosenOf(["greedy"])).toEqual(["greedy"]);
  });
});
