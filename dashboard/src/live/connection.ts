/** The state of the connection, computed from what the feed has observed. */

export type Connection = "connecting" | "live" | "quiet" | "stale" | "reconnecting" | "offline";

/** The gateway sends a message at least every 2 s. */
export const STALE_AFTER_MS = 6_000;
/** A socket that is silent this long is closed, even if the browser has not noticed. */
export const DEAD_AFTER_MS = 15_000;
/** Updates arrive twice a second while anything changes. */
export const QUIET_AFTER_MS = 3_000;
export const OFFLINE_AFTER_ATTEMPTS = 5;

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 15_000;

export interface Observations {
  open: boolean;
  online: boolean;
  /** Failed attempts since the last message. */
  attempts: number;
  everConnected: boolean;
  /** The gateway answers that there is no such run. */
  unknownRun: boolean;
  lastMessageAt: number;
  lastUpdateAt: number;
  now: number;
}

export function connectionOf(seen: Observations): Connection {
  if (!seen.online || seen.attempts >= OFFLINE_AFTER_ATTEMPTS) return "offline";
  if (seen.unknownRun) return "quiet";
  if (!seen.open) return seen.everConnected || seen.attempts > 0 ? "reconnecting" : "connecting";
  if (seen.lastMessageAt === 0) return seen.everConnected ? "reconnecting" : "connecting";
  if (seen.now - seen.lastMessageAt >= STALE_AFTER_MS) return "stale";
  if (seen.now - seen.lastUpdateAt >= QUIET_AFTER_MS) return "quiet";
  return "live";
}

/** Doubles with every attempt; the jitter spreads the reconnects of many pages. */
export function backoff(attempt: number, random: number): number {
  const ceiling = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** attempt);
  return ceiling / 2 + (ceiling / 2) * random;
}
