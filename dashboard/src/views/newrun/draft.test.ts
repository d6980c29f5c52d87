import { describe, expect, it } from "vitest";
import {
  contains,
  fromJson,
  parseNumber,
  textOf,
  toJson,
  valueAt,
  withGeneratedTasks,
  withoutDefaults,
  withPlatform,
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

  it("of a run with submitted tasks generates tasks instead", () => {
    const sent = { seed: 7, workload: { source: "submitted", preset: "hpc" } };
    expect(withGeneratedTasks(sent)).toEqual({ seed: 7, workload: { source: "generated", preset: "hpc" } });
    const spec = { seed: 7, workload: { preset: "hpc" } };
    expect(withGeneratedTasks(spec)).toBe(spec);
  });

  it("drops a field without a value, and groups that become empty", () => {
    const draft = { seed: 7, workload: { dependencies: { probability: 0.1 } } };
    expect(withValue(draft, "workload.dependencies.probability", undefined)).toEqual({ seed: 7 });
  });

  it("keeps the order of fields when a value changes", () => {
    const next = withValue({ seed: 7, tasks: 10, pace: "max" }, "tasks", 20);
    expect(Object.keys(next)).toEqual(["seed", "tasks", "pace"]);
  });

  it("keeps null, which is a value", () => {
    expect(withValue({}, "tasks", null)).toEqual({ tasks: null });
  });

  it("replaces a group that is not an object", () => {
    expect(withValue({ cluster: 3 }, "cluster.gpus", 2)).toEqual({ cluster: { gpus: 2 } });
  });

  it("drops the mix of the previous preset", () => {
    const draft = { workload: { preset: "hpc", arrival_rate: 6, mix: { size: {} } } };
    expect(withPreset(draft, "readme")).toEqual({ workload: { preset: "readme", arrival_rate: 6 } });
    expect(withPreset({ workload: { preset: "hpc" } }, undefined)).toEqual({});
  });

  it("round-trips through JSON, with fields that the form does not have", () => {
    const draft = { seed: 7, oracle: { step: 0.1 }, workload: { drift: [{ after: 5, preset: "hpc" }] } };
    expect(fromJson(toJson(draft))).toEqual({ draft, problem: null });
  });

  it("reports text that is not a spec", () => {
    expect(fromJson("{").draft).toBeNull();
    expect(fromJson("{").problem).not.toBe("");
    expect(fromJson("[1]").problem).toBe("A run spec is a JSON object: { ... }");
    expect(fromJson("  ")).toEqual({ draft: {}, problem: null });
  });
});

describe("a platform", () => {
  const rack = { cluster: { devices: [{ type: "t4", count: 4 }] } };
  const measured = { cluster: { devices: [{ type: "cpu" }] }, physics: { measured: [1], size_unit: 5 } };

  it("replaces the cluster and the fields of the one before, and nothing else", () => {
    const draft = { seed: 7, cluster: { gpus: 2 }, physics: { noise: 0.1 } };
    const first = withPlatform(draft, null, measured);
    expect(first).toEqual({ seed: 7, ...measured, physics: { noise: 0.1, measured: [1], size_unit: 5 } });
    expect(withPlatform(first, measured, rack)).toEqual({ seed: 7, ...rack, physics: { noise: 0.1 } });
    expect(withPlatform(first, measured, null)).toEqual({ seed: 7, physics: { noise: 0.1 } });
  });

  it("is recognised in a spec that has its defaults filled in", () => {
    const spec = { seed: 7, cluster: { cpus: 1, devices: [{ type: "t4", count: 4, node: "node", watts: null }] } };
    expect(contains(spec, rack)).toBe(true);
    expect(contains({ ...spec, cluster: { devices: [{ type: "t4", count: 5 }] } }, rack)).toBe(false);
    const more = { devices: [...rack.cluster.devices, { type: "cpu" }] };
    expect(contains({ cluster: more }, rack)).toBe(false);
    expect(contains({}, rack)).toBe(false);
  });
});

describe("number fields", () => {
  it("give numbers, nothing, or text for the gateway to reject", () => {
    expect(parseNumber(" 12.5 ")).toBe(12.5);
    expect(parseNumber("1e3")).toBe(1000);
    expect(parseNumber("")).toBeUndefined();
    expect(parseNumber("many")).toBe("many");
    expect(parseNumber("Infinity")).toBe("Infinity");
  });

  it("show the value", () => {
    expect(textOf(0)).toBe("0");
    expect(textOf(undefined)).toBe("");
    expect(textOf("many")).toBe("many");
  });
});

describe("a repeated run", () => {
  it("leaves the fields that differ from the defaults", () => {
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
