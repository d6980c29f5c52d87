/** The events of a filter: the newest page is polled, older pages are loaded on demand. */
import { useEffect, useState } from "react";
import { get, path } from "../../api/client";
import { type Polled, usePolled } from "../../api/polling";
import type { EventPage, StoredEvent } from "../../api/types";
import { mergeEvents } from "../../events";
import { useRefetchOnNotification } from "../../live";

export const PAGE = 100;
const NONE: StoredEvent[] = [];

export interface Events {
  source: Polled<EventPage>;
  shown: StoredEvent[];
  /** The number of events that arrived while the list was paused. */
  hidden: number;
  older: (() => Promise<void>) | null;
}

export interface EventQuery {
  run: string | null;
  kind: string | null;
  level: string | null;
  text: string;
}

/** What is loaded of one filter. */
interface Loaded {
  address: string;
  shown: StoredEvent[];
  /** Undefined before the first page. */
  before: number | null | undefined;
}

export function useEvents(filter: EventQuery, paused: boolean): Events {
  const query = { ...filter, limit: PAGE };
  const address = path("/api/events", query);
  const source = usePolled<EventPage>(address, 3_000);
  const [loaded, setLoaded] = useState<Loaded>({ address, shown: [], before: undefined });
  useRefetchOnNotification(source.refetch);

  const current = loaded.address === address;
  const shown = current ? loaded.shown : NONE;
  const held = paused && shown.length > 0;
  // While a new filter's first page is on its way, the page is still that of the old filter.
  const page = source.stale && shown.length === 0 ? null : source.data;
  useEffect(() => {
    if (!page || held) return;
    setLoaded((known) => {
      const same = known.address === address && known.before !== undefined;
      return {
        address,
        shown: mergeEvents(same ? known.shown : [], page.events),
        before: same ? known.before : page.next_before,
      };
    });
  }, [page, held, address]);

  const newest = shown[0]?.sequence ?? 0;
  const hidden = page && shown.length ? page.events.filter((event) => event.sequence > newest).length : 0;
  const older = async () => {
    const next = await get<EventPage>(path("/api/events", { ...query, before: loaded.before }));
    setLoaded((known) => ({
      ...known,
      shown: mergeEvents(known.shown, next.events),
      before: next.next_before,
    }));
  };
  return { source, shown, hidden, older: current && loaded.before ? older : null };
}
