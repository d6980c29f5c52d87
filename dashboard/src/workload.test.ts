import { describe, expect, it } from "vitest";
import type { RunSpec } from "./api/types";
import { driftText, workloadText } from "./workload";

function spec(name: string, workload: object): RunSpec {
  return { name, workload: { source: "generated", preset: "hpc", drift: [], ...workload } } as unknown as RunSpec;
}

describe("the workload of a run", () => {
  it("is its preset, and those that it changes to", () => {
    expect(workloadText(spec("friday", {}))).toBe("hpc");
    const drifting = spec("", { drift: [{ after: 1000, preset: "cpu_friendly" }] });
    expect(workloadText(drifting)).toBe("hpc → cpu_friendly");
    expect(driftText(drifting)).toBe("cpu_friendly from task 1,000 on");
  });

  it("of a replay is the name of the trace", () => {
    expect(workloadText(spec("jobs.swf #1a2b3c4d", { source: "submitted" }))).toBe("trace jobs.swf");
    expect(workloadText(spec("", { source: "submitted" }))).toBe("submitted tasks");
  });
});
