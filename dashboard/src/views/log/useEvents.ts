/** The events of a filter: the newest page polled, older ones fetched when asked for. */
import { useEffect, useState } from "react";
import { get, path } from "../../api/client";
import type { ArenaEvent, EventPage } from "../../api/types";
import { type Polled, usePolled } from "../../api/usePolled";
import { useLive } from "../../live";
import { joined } from "./events";

const PAGE = 100;

export interface Events {
  source: Polled<EventPage>;
  shown: ArenaEvent[];
  /** Arrived while the list was held, and not shown yet. */
  waiting: number;
  older: (() => Promise<void>) | null;
}

export function useEvents(run: string | null, kind: string | null, held: boolean): Events {
  const query = { run, kind, limit: PAGE };
  const source = usePolled<EventPage>(path("/api/events", query), 3_000);
  const [shown, setShown] = useState<ArenaEvent[]>([]);
  const [before, setBefore] = useState<number | null | undefined>(undefined);
  useAskAtOnce(source);

  const page = source.data;
  useEffect(() => {
    if (!page || (held && shown.length > 0)) return;
    setShown((known) => joined(known, page.events));
    setBefore((known) => (known === undefined ? page.next_before : known));
  }, [page, held, shown.length]);

  const newest = shown[0]?.sequence ?? 0;
  const waiting = page && shown.length ? page.events.filter((event) => event.sequence > newest).length : 0;
  const older = async () => {
    const next = await get<EventPage>(path("/api/events", { ...query, before }));
    setShown((known) => joined(known, next.events));
    setBefore(next.next_before);
  };
  return { source, shown, waiting, older: before ? older : null };
}

/** A live notification says that there is more to fetch, sooner than the next poll. */
function useAskAtOnce({ refetch }: Polled<EventPage>): void {
  const newest = useLive((live) => live.notifications[0]?.at ?? 0);
  useEffect(() => {
    // The event is stored a moment after it was told.
    const timer = setTimeout(refetch, 600);
    return () => clearTimeout(timer);
  }, [newest]);
}
