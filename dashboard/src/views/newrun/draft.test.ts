import { describe, expect, it } from "vitest";
import {
  fromJson,
  generated,
  shownText,
  toJson,
  typedNumber,
  valueAt,
  withoutDefaults,
  withPreset,
  withValue,
} from "./draft";

describe("a draft", () => {
  it("reads and writes nested fields without touching the original", () => {
    const draft = { workload: { preset: "hpc" } };
    const next = withValue(draft, "workload.arrival_rate", 6);
    expect(next).toEqual({ workload: { preset: "hpc", arrival_rate: 6 } });
    expect(draft).toEqual({ workload: { preset: "hpc" } });
    expect(valueAt(next, "workload.arrival_rate")).toBe(6);
    expect(valueAt(next, "cluster.gpus")).toBeUndefined();
  });

  it("of a run whose tasks were sent in generates tasks, or it would wait for ever", () => {
    const sent = { seed: 7, workload: { source: "submitted", preset: "hpc" } };
    expect(generated(sent)).toEqual({ seed: 7, workload: { source: "generated", preset: "hpc" } });
    const usual = { seed: 7, workload: { preset: "hpc" } };
    expect(generated(usual)).toBe(usual);
  });

  it("drops a field that was emptied, and the groups above it that are left empty", () => {
    const draft = { seed: 7, workload: { dependencies: { probability: 0.1 } } };
    expect(withValue(draft, "workload.dependencies.probability", undefined)).toEqual({ seed: 7 });
  });

  it("keeps the order of fields when a value changes", () => {
    const next = withValue({ seed: 7, tasks: 10, pace: "max" }, "tasks", 20);
    expect(Object.keys(next)).toEqual(["seed", "tasks", "pace"]);
  });

  it("keeps a value of null, which is no missing field", () => {
    expect(withValue({}, "tasks", null)).toEqual({ tasks: null });
  });

  it("replaces a group that was no object", () => {
    expect(withValue({ cluster: 3 }, "cluster.gpus", 2)).toEqual({ cluster: { gpus: 2 } });
  });

  it("throws away the mix of an earlier preset", () => {
    const draft = { workload: { preset: "hpc", arrival_rate: 6, mix: { size: {} } } };
    expect(withPreset(draft, "readme")).toEqual({ workload: { preset: "readme", arrival_rate: 6 } });
    expect(withPreset({ workload: { preset: "hpc" } }, undefined)).toEqual({});
  });

  it("survives the way to JSON and back, with fields that no form knows", () => {
    const draft = { seed: 7, oracle: { step: 0.1 }, workload: { drift: [{ after: 5, preset: "hpc" }] } };
    expect(fromJson(toJson(draft))).toEqual({ draft, problem: null });
  });

  it("says what is wrong with text that is no spec", () => {
    expect(fromJson("{").draft).toBeNull();
    expect(fromJson("{").problem).not.toBe("");
    expect(fromJson("[1]").problem).toBe("A run spec is an object: { ... }");
    expect(fromJson("  ")).toEqual({ draft: {}, problem: null });
  });
});

describe("typed numbers", () => {
  it("are numbers, nothing, or text for the gateway to refuse", () => {
    expect(typedNumber(" 12.5 ")).toBe(12.5);
    expect(typedNumber("1e3")).toBe(1000);
    expect(typedNumber("")).toBeUndefined();
    expect(typedNumber("many")).toBe("many");
    expect(typedNumber("Infinity")).toBe("Infinity");
  });

  it("are shown as they were given", () => {
    expect(shownText(0)).toBe("0");
    expect(shownText(undefined)).toBe("");
    expect(shownText("many")).toBe("many");
  });
});

describe("a run to start from", () => {
  it("leaves what a person would have to write", () => {
    const defaults = { seed: 42, tasks: null, cluster: { cpus: 1, gpus: 4 }, schedulers: [] };
    const spec = { seed: 42, tasks: 100, cluster: { cpus: 1, gpus: 2 }, schedulers: ["greedy"] };
    expect(withoutDefaults(spec, defaults)).toEqual({
      tasks: 100,
      cluster: { gpus: 2 },
      schedulers: ["greedy"],
    });
    expect(withoutDefaults(defaults, defaults)).toEqual({});
  });
});
