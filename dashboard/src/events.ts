/** Pages of events merged into one list, newest first. */
import type { StoredEvent } from "./api/types";
import type { Tone } from "./ui/Badge";

const LEVEL_TONE: Partial<Record<StoredEvent["level"], Tone>> = { problem: "bad", warning: "warn" };
const KIND_TONE: Record<string, Tone> = { run: "accent", model: "accent2" };

/** The colour of an event: of its level, else of its kind. */
export function toneOf({ level, kind }: Pick<StoredEvent, "level" | "kind">): Tone {
  return LEVEL_TONE[level] ?? KIND_TONE[kind] ?? "neutral";
}

export const MAX_EVENTS = 2000;

/** Events that say the same again, of which the newest is shown. */
export interface EventGroup {
  key: string;
  newest: StoredEvent;
  /** Newest first, at most MAX_MEMBERS. */
  members: StoredEvent[];
  count: number;
  since: number;
}

export const MAX_MEMBERS = 20;

/** An event of `added` replaces the known one; the oldest are dropped beyond the limit. */
export function mergeEvents(
  known: readonly StoredEvent[],
  added: readonly StoredEvent[],
  limit = MAX_EVENTS,
): StoredEvent[] {
  const bySequence = new Map<number, StoredEvent>();
  for (const event of known) bySequence.set(event.sequence, event);
  for (const event of added) bySequence.set(event.sequence, event);
  return [...bySequence.values()].sort((left, right) => right.sequence - left.sequence).slice(0, limit);
}

/** One line for events that say the same again, in the order of the newest of each. */
export function groupEvents(events: readonly StoredEvent[], service = ""): EventGroup[] {
  const groups = new Map<string, EventGroup>();
  for (const event of events) {
    if (service && event.service !== service) continue;
    const group = groups.get(event.group);
    if (group) {
      group.count += 1;
      group.since = event.at;
      if (group.members.length < MAX_MEMBERS) group.members.push(event);
    } else {
      groups.set(event.group, { key: event.group, newest: event, members: [event], count: 1, since: event.at });
    }
  }
  return [...groups.values()];
}

/** The choices of a filter: the loaded values, and the selected one. */
export function choices(loaded: readonly string[], selected: string): string[] {
  return [...new Set([...loaded, selected])].filter(Boolean).sort();
}
