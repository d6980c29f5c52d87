/** The events of a filter: the newest page is polled, older pages are loaded on demand. */
import { useEffect, useState } from "react";
import { get, path } from "../../api/client";
import { type Polled, usePolled } from "../../api/polling";
import type { EventPage, StoredEvent } from "../../api/types";
import { useLive } from "../../live";
import { mergeEvents } from "./events";

const PAGE = 100;

export interface Events {
  source: Polled<EventPage>;
  shown: StoredEvent[];
  /** The number of events that arrived while the list was paused. */
  hidden: number;
  older: (() => Promise<void>) | null;
}

export function useEvents(run: string | null, kind: string | null, paused: boolean): Events {
  const query = { run, kind, limit: PAGE };
  const source = usePolled<EventPage>(path("/api/events", query), 3_000);
  const [shown, setShown] = useState<StoredEvent[]>([]);
  const [before, setBefore] = useState<number | null | undefined>(undefined);
  useRefetchOnNotification(source);

  const page = source.data;
  useEffect(() => {
    if (!page || (paused && shown.length > 0)) return;
    setShown((known) => mergeEvents(known, page.events));
    setBefore((known) => (known === undefined ? page.next_before : known));
  }, [page, paused, shown.length]);

  const newest = shown[0]?.sequence ?? 0;
  const hidden = page && shown.length ? page.events.filter((event) => event.sequence > newest).length : 0;
  const older = async () => {
    const next = await get<EventPage>(path("/api/events", { ...query, before }));
    setShown((known) => mergeEvents(known, next.events));
    setBefore(next.next_before);
  };
  return { source, shown, hidden, older: before ? older : null };
}

/** Fetches a new event earlier than the next poll. */
function useRefetchOnNotification({ refetch }: Polled<EventPage>): void {
  const newest = useLive((live) => live.notifications[0]?.at ?? 0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `newest` is the trigger.
  useEffect(() => {
    // The event is stored a moment after its notification.
    const timer = setTimeout(refetch, 600);
    return () => clearTimeout(timer);
  }, [newest, refetch]);
}
