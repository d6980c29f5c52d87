import { describe, expect, it } from "vitest";
import type { RunSpec } from "../../api/types";
import { ORACLE } from "../../schedulers";
import { clusterText, summary } from "./summary";

const SPEC = {
  name: "",
  seed: 7,
  tasks: null,
  pace: 20,
  schedulers: ["greedy", ORACLE],
  cluster: { cpus: 1, gpus: 4, gpu_memory_mb: 8000, devices: [], nodes: [] },
  physics: { split: "serial", memory_policy: "cpu", cost_model: "cloud" },
  learning: { pretrain_tasks: 1000, energy_weight: 0.5 },
  workload: { preset: "hpc", arrival_rate: 4, drift: [], dependencies: { probability: 0 } },
} as unknown as RunSpec; // only what the summary reads

describe("the summary of a spec", () => {
  it("has schedulers, tasks, pace and cluster", () => {
    expect(summary(SPEC)).toBe(
      "2 schedulers get an endless stream of hpc tasks, 20 per second, each on a cluster of 1 CPU and 4 GPUs of 8,000 MB. " +
        "Seed 7: the same spec and seed give the same tasks.",
    );
  });

  it("has the devices and nodes of any cluster", () => {
    const cluster = {
      devices: [
        { type: "a100", count: 4, node: "big" },
        { type: "t4", count: 2, node: "small" },
        { type: "cpu", count: 2, node: "big" },
      ],
      nodes: [
        { name: "big", count: 2 },
        { name: "small", count: 3 },
      ],
    } as unknown as RunSpec["cluster"];
    expect(clusterText(cluster)).toBe("5 nodes with 8 A100, 6 T4 and 4 CPU");
    const one = { devices: [{ type: "cpu", count: 2, node: "node" }], nodes: [] } as unknown as RunSpec["cluster"];
    expect(clusterText(one)).toBe("2 CPU");
  });

  it("has drift, limit and the maximum pace", () => {
    const text = summary({
      ...SPEC,
      tasks: 20000,
      pace: "max",
      schedulers: [],
      workload: { ...SPEC.workload, drift: [{ after: 10000, preset: "cpu_friendly" }] },
    });
    expect(text).toContain(
      "Every deployed scheduler gets 20,000 hpc tasks, cpu_friendly from task 10,000 on, as fast as possible",
    );
  });
});
