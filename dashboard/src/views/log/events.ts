/** Pages of events merged into one list, newest first. */
import type { StoredEvent } from "../../api/types";

export const MAX_EVENTS = 2000;

export interface EventFilter {
  service: string;
  text: string;
}

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

export function filterEvents(events: readonly StoredEvent[], filter: EventFilter): StoredEvent[] {
  const text = filter.text.trim().toLowerCase();
  return events.filter(
    (event) =>
      (!filter.service || event.service === filter.service) &&
      (!text || `${event.message} ${event.kind} ${event.run ?? ""}`.toLowerCase().includes(text)),
  );
}

/** The choices of a filter: the loaded values, and the selected one. */
export function choices(loaded: readonly string[], selected: string): string[] {
  return [...new Set([...loaded, selected])].filter(Boolean).sort();
}
