import { describe, expect, it } from "vitest";
import { EXAMPLE, submission } from "./submission";

describe("a submitted task", () => {
  it("has numbers, and its dependencies as a list", () => {
    expect(submission("r1", { ...EXAMPLE, dependencies: "#12, 13" })).toEqual({
      run: "r1",
      tasks: [{ size: 960, compute_intensity: 0.75, memory_required: 81, dependencies: [12, 13] }],
    });
  });

  it("has a width and a kind where they are given", () => {
    expect(submission("r1", { ...EXAMPLE, width: "2", kind: "potrf" })).toEqual({
      run: "r1",
      tasks: [{ size: 960, compute_intensity: 0.75, memory_required: 81, dependencies: [], width: 2, kind: "potrf" }],
    });
  });

  it("leaves text that is not a number to the gateway", () => {
    expect(submission("r1", { ...EXAMPLE, size: "big", memory_required: "" })).toEqual({
      run: "r1",
      tasks: [{ size: "big", compute_intensity: 0.75, memory_required: "", dependencies: [] }],
    });
  });
});
