import { describe, expect, it } from "vitest";
import { readTrace, traceDraft } from "./traceFile";

describe("a trace file", () => {
  it("has a header with the columns of tasks, and lines", () => {
    const trace = readTrace(
      "a.csv",
      "size, compute_intensity,memory_required,arrival_time\r\n1,0.5,10,0\r\n\r\n2,0.5,10,1\n",
    );
    expect(trace.header).toBe("size,compute_intensity,memory_required,arrival_time");
    expect(trace.lines).toEqual(["1,0.5,10,0", "2,0.5,10,1"]);
  });

  it("has dependencies by task_id, which become numbers of lines", () => {
    const header = "task_id,size,compute_intensity,memory_required,arrival_time,dependencies";
    const trace = readTrace("a.csv", `${header}\n7,1,1,1,0,\n9,1,1,1,1,7\n8,1,1,1,2,7;9\n`);
    expect(trace.lines).toEqual(["7,1,1,1,0,", "9,1,1,1,1,0", "8,1,1,1,2,0;1"]);
  });

  it("without one of them is refused with what is missing", () => {
    expect(() => readTrace("a.csv", "size,arrival_time\n1,0")).toThrow("no column compute_intensity, memory_required");
    expect(() => readTrace("a.csv", "size,compute_intensity,memory_required,arrival_time\n")).toThrow("no tasks");
  });

  it("determines the length of its run, and keeps the rest of the draft", () => {
    const trace = { name: "a.csv", header: "", lines: [] };
    expect(traceDraft({ tasks: 10, seed: 3, workload: { preset: "readme" } }, trace)).toEqual({
      seed: 3,
      name: "a.csv",
      pace: "max",
      workload: { preset: "readme", source: "submitted" },
    });
  });
});
