import { describe, expect, it } from "vitest";
import type { Choice } from "../../api/types";
import { figuresOf, scoreText, verdict } from "./choice";

const GPU = { device: "gpu_2", type: "gpu", queued: 3, predicted: 2, expected: 2.5, score: 9, chosen: false };
const CPU = { ...GPU, device: "cpu_0", type: "cpu", score: 8, chosen: true };

const CHOICE: Choice = {
  scheduler: "predictive",
  model_version: 3,
  explored: false,
  probability: 1,
  overruled: false,
  compared: 5,
  devices: [CPU, GPU],
  queues_complete: true,
  model: null,
};

describe("why a learner chose its device", () => {
  it("is the score, exploration or the guard", () => {
    expect(verdict(CHOICE)).toBe("CPU 0: the lowest score.");
    const explored = { ...CHOICE, explored: true, probability: 0.005 };
    expect(verdict(explored)).toContain("explored, with probability 0.50 %");
    const overruled = { ...CHOICE, overruled: true };
    expect(verdict({ ...overruled, scheduler: "attention_agent" })).toContain("The guard took the device");
    expect(verdict({ ...overruled, scheduler: "my_learner" })).toContain("Another rule of the scheduler decided");
    expect(verdict({ ...CHOICE, devices: [GPU] })).toMatch(/^No device/);
  });

  it("has the formula of the score where it is known", () => {
    expect(scoreText("predictive")).toContain("lower is better: seconds queued there + predicted seconds ×");
    expect(scoreText("my_learner")).toBe("Score: what the scheduler compared, lower is better.");
  });

  it("has the model's figures with labels; unknown ones keep their name", () => {
    const figures = figuresOf({ price_cpu: 2, price_load: 0.25, error_v100: 0.3, guarded: 0.02, mystery: 7 });
    expect(figures.map(({ label, text }) => [label, text])).toEqual([
      ["Price of a second on CPU", "2.00"],
      ["Price of load", "0.250"],
      ["Error on V100", "30.0 %"],
      ["Overruled by the guard", "2.00 %"],
      ["mystery", "7.00"],
    ]);
  });
});
