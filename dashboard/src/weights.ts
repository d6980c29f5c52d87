/** The weights of time, energy and cost: kept in the address, sent to the gateway, which ranks by them. */
import { useEffect, useMemo } from "react";
import type { Weights } from "./api/types";
import { feed } from "./live";
import { setParameters, useParameter } from "./url";

export const MEASURES = ["time", "energy", "cost"] as const;
export const DEFAULT_WEIGHTS: Weights = { time: 100, energy: 0, cost: 0 };
const SEND_AFTER_MS = 120;

/** "60,30,10" in the order of MEASURES; the default when that is not what it says. */
export function parseWeights(text: string | null): Weights {
  const parts = (text ?? "").split(",").map(Number);
  const [time, energy, cost] = parts;
  const valid =
    parts.length === 3 &&
    parts.every((weight) => Number.isFinite(weight) && weight >= 0 && weight <= 100) &&
    parts.some((weight) => weight > 0);
  if (!valid || time === undefined || energy === undefined || cost === undefined) return DEFAULT_WEIGHTS;
  return { time, energy, cost };
}

export function formatWeights(weights: Weights): string {
  return MEASURES.map((measure) => weights[measure]).join(",");
}

export function useWeights(): [Weights, (weights: Weights) => void] {
  const text = useParameter("weights");
  const weights = useMemo(() => parseWeights(text), [text]);
  return [weights, (next) => setParameters({ weights: formatWeights(next) })];
}

/** As shares of 1: clients with equal shares receive the same cached message. */
export function shares(weights: Weights): Weights {
  const sum = weights.time + weights.energy + weights.cost;
  const share = (weight: number) => Number((weight / sum).toFixed(4));
  return { time: share(weights.time), energy: share(weights.energy), cost: share(weights.cost) };
}

/** Sends the weights when the slider rests; the feed repeats them after a reconnect. */
export function useSentWeights(): void {
  const [weights] = useWeights();
  useEffect(() => {
    const timer = setTimeout(() => feed.setWeights(shares(weights)), SEND_AFTER_MS);
    return () => clearTimeout(timer);
  }, [weights]);
}
