/** How fresh the picture is. Pure: the feed gives the facts, this says what they mean. */

export type Connection = "connecting" | "live" | "quiet" | "stale" | "reconnecting" | "offline";

/** The gateway says something at least every 2 s; three misses are no coincidence. */
export const STALE_AFTER_MS = 6_000;
/** A socket that is silent this long is dead even if the browser has not noticed. */
export const DEAD_AFTER_MS = 15_000;
/** Updates come at 2 Hz; without any for this long, nothing is happening. */
export const QUIET_AFTER_MS = 3_000;
/** After so many tries in vain it is no hiccup. */
export const OFFLINE_AFTER_ATTEMPTS = 5;

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 15_000;

export interface LinkFacts {
  open: boolean;
  online: boolean;
  /** Tries in vain since the last message. */
  attempts: number;
  everConnected: boolean;
  /** The gateway answers, but has no such run: it is there, and there is nothing to show. */
  unknownRun: boolean;
  lastMessageAt: number;
  lastUpdateAt: number;
  now: number;
}

export function connectionOf(facts: LinkFacts): Connection {
  if (!facts.online || facts.attempts >= OFFLINE_AFTER_ATTEMPTS) return "offline";
  if (facts.unknownRun) return "quiet";
  if (!facts.open) return facts.everConnected || facts.attempts > 0 ? "reconnecting" : "connecting";
  if (facts.lastMessageAt === 0) return facts.everConnected ? "reconnecting" : "connecting";
  if (facts.now - facts.lastMessageAt >= STALE_AFTER_MS) return "stale";
  if (facts.now - facts.lastUpdateAt >= QUIET_AFTER_MS) return "quiet";
  return "live";
}

/** Doubles with every try; the jitter keeps two hundred walls from returning in one instant. */
export function backoff(attempt: number, random: number): number {
  const ceiling = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** attempt);
  return ceiling / 2 + (ceiling / 2) * random;
}
