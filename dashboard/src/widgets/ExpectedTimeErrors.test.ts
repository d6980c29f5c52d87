import { describe, expect, it } from "vitest";
import { errorRows } from "./ExpectedTimeErrors";

describe("the error of expected times", () => {
  it("has a row for each device type; stretches without tasks are left out", () => {
    const track = {
      first: [0, 20, 40],
      last: [20, 40, 60],
      exact: true,
      types: {
        gpu: { error: [0.5, 0.3, 0.2], tasks: [15, 16, 20] },
        cpu: { error: [null, 0.25, null], tasks: [0, 4, 0] },
      },
    };
    expect(errorRows(track)).toEqual([
      { type: "cpu", tasks: 4, first: 0.25, newest: 0.25, lowest: 0.25, highest: 0.25 },
      { type: "gpu", tasks: 51, first: 0.5, newest: 0.2, lowest: 0.2, highest: 0.5 },
    ]);
  });
});
