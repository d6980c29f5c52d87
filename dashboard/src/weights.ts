/** What counts, and how much: kept in the address, sent to the gateway, which does the ranking. */
import { useEffect, useMemo } from "react";
import type { Weights } from "./api/types";
import { feed } from "./live";
import { setParameters, useParameter } from "./url";

export const MEASURES = ["time", "energy", "cost"] as const;
export const DEFAULT_WEIGHTS: Weights = { time: 100, energy: 0, cost: 0 };
const SEND_AFTER_MS = 120;

/** "60,30,10" in the order of MEASURES; anything else is the default. */
export function parseWeights(text: string | null): Weights {
  const parts = (text ?? "").split(",").map(Number);
  const [time, energy, cost] = parts;
  const fine =
    parts.length === 3 &&
    parts.every((weight) => Number.isFinite(weight) && weight >= 0 && weight <= 100) &&
    parts.some((weight) => weight > 0);
  if (!fine || time === undefined || energy === undefined || cost === undefined) return DEFAULT_WEIGHTS;
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

/** As shares of 1: clients that weigh alike share what the gateway makes for them. */
export function shares(weights: Weights): Weights {
  const sum = weights.time + weights.energy + weights.cost;
  const share = (weight: number) => Number((weight / sum).toFixed(4));
  return { time: share(weights.time), energy: share(weights.energy), cost: share(weights.cost) };
}

/** Sent when the slider rests, and again by the feed after every reconnect. */
export function useSentWeights(): void {
  const [weights] = useWeights();
  useEffect(() => {
    const timer = setTimeout(() => feed.weigh(shares(weights)), SEND_AFTER_MS);
    return () => clearTimeout(timer);
  }, [weights]);
}
