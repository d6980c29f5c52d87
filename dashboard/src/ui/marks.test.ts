import { describe, expect, it } from "vitest";
import type { RunSpec, StoredModel } from "../api/types";
import { driftMarks, markText, modelMarks } from "./marks";

function model(version: number, shipped = true): StoredModel {
  return { version, shipped, last_task: version * 50 } as StoredModel;
}

describe("marks over the tasks", () => {
  it("are where the workload changes", () => {
    const spec = { workload: { drift: [{ after: 1000, preset: "cpu_friendly" }] } } as RunSpec;
    const marks = driftMarks(spec);
    expect(marks).toEqual([{ at: 1000, label: "cpu_friendly", kind: "drift" }]);
    expect(markText(marks)).toBe(" Vertical lines: dashed: the workload changes.");
    expect(driftMarks(null)).toEqual([]);
  });

  it("are where a published model replaced another, and never too many", () => {
    expect(modelMarks([model(1), model(2, false), model(3)])).toEqual([
      { at: 50, label: "v1", kind: "model" },
      { at: 150, label: "v3", kind: "model" },
    ]);
    const many = modelMarks(Array.from({ length: 500 }, (_, at) => model(at + 1)));
    expect(many.length).toBeLessThanOrEqual(40);
    expect(many.every((mark) => mark.label === "")).toBe(true);
  });
});
