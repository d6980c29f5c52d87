/** Why a scheduler chose its device, in words. Pure functions. */
import type { Choice } from "../../api/types";
import { deviceLabel, typeLabel } from "../../devices";
import { number, percent } from "../../format";

/** How each learner's score is made up. */
const SCORES: Record<string, string> = {
  predictive: "seconds queued there + predicted seconds × (1 + the price of that device's time)",
  attention_agent:
    "seconds until it would finish there + price × seconds + a correction that the network has learned; only differences count",
  bandit:
    "weight × seconds queued there + weight × seconds there, with weights drawn at random around what it has learned",
};

const OVERRULED: Record<string, string> = {
  attention_agent: "The guard took the device that is expected to finish first: the lowest score would end much later.",
};

export function scoreText(scheduler: string): string {
  const formula = SCORES[scheduler];
  return formula ? `Score, lower is better: ${formula}.` : "Score: what the scheduler compared, lower is better.";
}

export function verdict(choice: Choice): string {
  const chosen = choice.devices.filter((device) => device.chosen).map((device) => deviceLabel(device.device));
  const where = chosen.join(", ") || "No device";
  if (choice.explored) {
    return `${where}: explored, with probability ${percent(choice.probability)}. A choice to learn from, not by score.`;
  }
  if (choice.overruled) {
    return `${where}: not the lowest score. ${OVERRULED[choice.scheduler] ?? "Another rule of the scheduler decided."}`;
  }
  return `${where}: the lowest score.`;
}

export interface Figure {
  key: string;
  label: string;
  text: string;
  value: number;
  hint: string;
}

interface Meaning {
  label: string;
  hint: string;
  format?: (value: number) => string;
}

const times = (value: number) => `${number(value)} ×`;
const share = (value: number) => percent(value);

/** The figures of the built-in learners. */
const FIGURES: Record<string, Meaning> = {
  price_load: {
    label: "Price of load",
    hint: "Added to the price of a second for each average task queued per device",
  },
  price_wait: { label: "Price of waiting", hint: "Added for each average task that is queued on the device" },
  price_bulk: { label: "Price in the bulk lane", hint: "Added on the devices that take the long tasks under load" },
  price_bulk_load: { label: "Price of load, bulk lane", hint: "Instead of the price of load on those devices" },
  replay_over_eft: {
    label: "In a replay, over earliest finish",
    hint: "Cost of the newest tasks with these prices, relative to the rule eft; below 1 is better",
    format: times,
  },
  cost_over_eft: {
    label: "In roll-outs, over earliest finish",
    hint: "Cost of generated tasks with this model, relative to the rule eft; below 1 is better",
    format: times,
  },
  guarded: {
    label: "Overruled by the guard",
    hint: "Share of the newest tasks where its choice would have finished much later than that of eft",
    format: share,
  },
  queue: { label: "Weight of a queued second", hint: "1 in the rule eft" },
  load: { label: "Weight of load", hint: "Of a second of the task, for each average task queued per device" },
  wait: { label: "Weight of waiting", hint: "Of a second of the task, for each average task queued on the device" },
};

/** Figures of a device type, by the beginning of their name. */
const TYPE_FIGURES: Record<string, (type: string) => Meaning> = {
  price_: (type) => ({
    label: `Price of a second on ${type}`,
    hint: "What the time of this device is worth to others; 0: only the task's own seconds count",
  }),
  error_: (type) => ({
    label: `Error on ${type}`,
    hint: "Spread of the real time around the predicted one",
    format: share,
  }),
  second_: (type) => ({ label: `Weight of a second on ${type}`, hint: "1 in the rule eft" }),
};

/** The figures of a model, with labels; those that nobody knows keep their name. */
export function figuresOf(metrics: Record<string, number>): Figure[] {
  return Object.entries(metrics).map(([key, value]) => {
    const { label, hint, format = number } = meaning(key);
    return { key, label, hint, value, text: format(value) };
  });
}

function meaning(key: string): Meaning {
  const known = FIGURES[key];
  if (known) return known;
  const prefix = Object.keys(TYPE_FIGURES).find((each) => key.startsWith(each));
  const ofType = prefix && TYPE_FIGURES[prefix];
  return ofType ? ofType(typeLabel(key.slice(prefix.length))) : { label: key, hint: "" };
}
