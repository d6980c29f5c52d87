/** The weights of the ranking: kept in the address, sent to the gateway, which ranks by them. */
import { useEffect, useMemo } from "react";
import type { Objective, Weights } from "./api/types";
import { percent } from "./format";
import { feed } from "./live";
import { setParameters, useParameter } from "./url";

export const MEASURES = ["turnaround", "time", "energy", "cost"] as const;
export const MEASURE_LABELS: Record<keyof Weights, string> = {
  turnaround: "Turnaround",
  time: "Execution",
  energy: "Energy",
  cost: "Cost",
};
export const DEFAULT_WEIGHTS: Weights = { turnaround: 100, time: 0, energy: 0, cost: 0 };
const SEND_AFTER_MS = 120;

/** "60,0,30,10" in the order of MEASURES; the default when that is not what it says. */
export function parseWeights(text: string | null): Weights {
  const given = (text ?? "").split(",").map(Number);
  // Addresses of older versions have three weights: turnaround is new.
  const parts = given.length === MEASURES.length - 1 ? [0, ...given] : given;
  const [turnaround, time, energy, cost] = parts as [number, number, number, number];
  const valid =
    parts.length === MEASURES.length &&
    parts.every((weight) => Number.isFinite(weight) && weight >= 0 && weight <= 100) &&
    parts.some((weight) => weight > 0);
  return valid ? { turnaround, time, energy, cost } : DEFAULT_WEIGHTS;
}

export function formatWeights(weights: Weights): string {
  return MEASURES.map((measure) => weights[measure]).join(",");
}

export function useWeights(): [Weights, (weights: Weights) => void] {
  const text = useParameter("weights");
  const weights = useMemo(() => parseWeights(text), [text]);
  return [weights, (next) => setParameters({ weights: formatWeights(next) })];
}

export function totalWeight(weights: Weights): number {
  return MEASURES.reduce((sum, measure) => sum + weights[measure], 0);
}

/** As shares of 1: clients with equal shares receive the same cached message. */
export function shares(weights: Weights): Weights {
  const total = totalWeight(weights);
  const share = (measure: keyof Weights) => Number((weights[measure] / total).toFixed(4));
  return { turnaround: share("turnaround"), time: share("time"), energy: share("energy"), cost: share("cost") };
}

/** What is ranked by: "turnaround", or "75 % turnaround, 25 % energy". */
export function describeWeights(weights: Weights): string {
  const counted = MEASURES.filter((measure) => weights[measure] > 0);
  const named = (measure: keyof Weights) => (measure === "time" ? "execution time" : measure);
  if (counted.length === 1) return counted.map(named).join("");
  const total = totalWeight(weights);
  return counted.map((measure) => `${percent(weights[measure] / total, 0)} ${named(measure)}`).join(", ");
}

/** Sends the weights when the slider rests; the feed repeats them after a reconnect. */
export function useSentWeights(): void {
  const [weights] = useWeights();
  useEffect(() => {
    const timer = setTimeout(() => feed.setWeights(shares(weights)), SEND_AFTER_MS);
    return () => clearTimeout(timer);
  }, [weights]);
}

/**
 * What learners should minimise to follow the weights: turnaround has the weight 1, and execution time counts as
 * turnaround. Null without a weight for either: tasks might wait for ever.
 */
export function objectiveOf(weights: Weights): Objective | null {
  const turnaround = weights.turnaround + weights.time;
  if (turnaround <= 0) return null;
  const relative = (weight: number) => Number((weight / turnaround).toFixed(4));
  return { turnaround: 1, energy: relative(weights.energy), cost: relative(weights.cost) };
}

/** "turnaround + 0.5 × energy". */
export function describeObjective({ turnaround, energy, cost }: Objective): string {
  const term = (weight: number, name: string) => {
    const relative = weight / turnaround;
    if (relative <= 0) return [];
    return [Math.abs(relative - 1) < 1e-9 ? name : `${Number(relative.toPrecision(3))} × ${name}`];
  };
  return ["turnaround", ...term(energy, "energy"), ...term(cost, "cost")].join(" + ");
}
