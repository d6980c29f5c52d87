/** Pages of events put together: newest first, each once, and never more than a screenful of pages. */
import type { ArenaEvent } from "../../api/types";

export const MAX_EVENTS = 2000;

export interface EventFilter {
  service: string;
  text: string;
}

/** `news` wins over what is known; beyond the limit the oldest go. */
export function joined(
  known: readonly ArenaEvent[],
  news: readonly ArenaEvent[],
  limit = MAX_EVENTS,
): ArenaEvent[] {
  const bySequence = new Map<number, ArenaEvent>();
  for (const event of known) bySequence.set(event.sequence, event);
  for (const event of news) bySequence.set(event.sequence, event);
  return [...bySequence.values()]
    .sort((left, right) => right.sequence - left.sequence)
    .slice(0, limit);
}

export function matching(events: readonly ArenaEvent[], filter: EventFilter): ArenaEvent[] {
  const wanted = filter.text.trim().toLowerCase();
  return events.filter(
    (event) =>
      (!filter.service || event.service === filter.service) &&
      (!wanted || `${event.message} ${event.kind} ${event.run ?? ""}`.toLowerCase().includes(wanted)),
  );
}

/** The values that a filter can offer: those seen, and the chosen one even if it is not. */
export function choices(seen: readonly string[], chosen: string): string[] {
  return [...new Set([...seen, chosen])].filter(Boolean).sort();
}
