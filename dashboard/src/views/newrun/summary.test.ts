import { describe, expect, it } from "vitest";
import type { RunSpec } from "../../api/types";
import { summary } from "./summary";

const SPEC: RunSpec = {
  name: "",
  seed: 7,
  tasks: null,
  pace: 20,
  schedulers: ["greedy", "oracle"],
  cluster: { cpus: 1, gpus: 4, gpu_memory_mb: 8000 },
  physics: { split: "serial", memory_policy: "cpu", cost_model: "cloud" },
  learning: { pretrain_tasks: 1000, energy_weight: 0.5 },
  workload: { preset: "hpc", arrival_rate: 4, drift: [], dependencies: { probability: 0 } },
};

describe("the summary of a spec", () => {
  it("says who gets what, how fast and on what", () => {
    expect(summary(SPEC)).toBe(
      "2 schedulers get an endless stream of hpc tasks, 20 a second, each on 1 CPU and 4 GPUs of 8,000 MB of its own. " +
        "Seed 7: the same spec and seed give the same tasks.",
    );
  });

  it("tells of a drift, a limit and the fastest pace", () => {
    const text = summary({
      ...SPEC,
      tasks: 20000,
      pace: "max",
      schedulers: [],
      workload: { ...SPEC.workload, drift: [{ after: 10000, preset: "cpu_friendly" }] },
    });
    expect(text).toContain(
      "Every scheduler that is deployed gets 20,000 hpc tasks, cpu_friendly from task 10,000 on, as fast as they can be done",
    );
  });
});
