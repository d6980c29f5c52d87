import { describe, expect, it } from "vitest";
import { CLAIRVOYANT, colourOf, isReference, labelOf, ORACLE } from "./schedulers";

const BUILT_IN = [
  ORACLE,
  "hybrid_ml",
  "rl_agent",
  "greedy",
  "round_robin",
  "random",
  "cpu_only",
  "gpu_only",
  "least_loaded",
  "eft",
  "heft",
  "predictive",
  "attention_agent",
  "bandit",
  CLAIRVOYANT,
];

/** Of a colour such as #ff7b7b, in degrees. */
function hue(colour: string): number {
  const [r = 0, g = 0, b = 0] = [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16));
  return (Math.atan2(Math.sqrt(3) * (g - b), 2 * r - g - b) * 180) / Math.PI;
}

function apart(a: number, b: number): number {
  const turn = Math.abs(a - b) % 360;
  return Math.min(turn, 360 - turn);
}

describe("references", () => {
  it("are the Oracle and the clairvoyant scheduler", () => {
    expect(BUILT_IN.filter(isReference)).toEqual([ORACLE, CLAIRVOYANT]);
  });
});

describe("labels", () => {
  it("come from the name", () => {
    expect(BUILT_IN.map(labelOf)).toEqual([
      "Oracle",
      "Hybrid ML",
      "RL agent",
      "Greedy",
      "Round robin",
      "Random",
      "CPU only",
      "GPU only",
      "Least loaded",
      "EFT",
      "HEFT",
      "Predictive",
      "Attention agent",
      "Bandit",
      "Clairvoyant",
    ]);
    expect(labelOf("transfer_aware")).toBe("Transfer aware");
  });
});

describe("colours", () => {
  it("tell the built-in schedulers apart in both themes", () => {
    for (const theme of ["dark", "light"] as const) {
      expect(new Set(BUILT_IN.map((name) => colourOf(name, theme))).size).toBe(BUILT_IN.length);
    }
  });

  it("of a plug-in are never nearly that of Least loaded", () => {
    const leastLoaded = hue(colourOf("least_loaded", "dark"));
    for (let at = 0; at < 200; at += 1) {
      const own = Number(/hsl\((\d+)/.exec(colourOf(`plug_in_${at}`, "dark"))?.[1]);
      expect(apart(own, leastLoaded)).toBeGreaterThan(30);
    }
  });

  it("of a plug-in are always the same, and differ between plug-ins", () => {
    expect(colourOf("mine_a", "dark")).toBe(colourOf("mine_a", "dark"));
    expect(colourOf("mine_a", "dark")).not.toBe(colourOf("mine_b", "dark"));
    expect(colourOf("mine_a", "dark")).toMatch(/^hsl\(\d+, 78%, 70%\)$/);
  });

  it("have enough contrast with the background", () => {
    for (const name of BUILT_IN) {
      expect(contrast(colourOf(name, "dark"), "#121a2c")).toBeGreaterThan(4.5);
      expect(contrast(colourOf(name, "light"), "#ffffff")).toBeGreaterThan(3.5);
    }
  });
});

/** The contrast ratio of WCAG. */
function contrast(left: string, right: string): number {
  const [a, b] = [luminance(left), luminance(right)];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}

function luminance(hex: string): number {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const share = parseInt(hex.slice(at, at + 2), 16) / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
