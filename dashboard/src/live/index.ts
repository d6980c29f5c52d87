/** The feed of this page, and the hooks that read it. */
import { useEffect, useMemo } from "react";
import { useStore } from "zustand";
import { useShallow } from "zustand/shallow";
import type { ComparisonRow, DeviceType, Notification } from "../api/types";
import { Feed, type Link } from "./feed";
import type { LiveState } from "./state";

const STORED_AFTER_MS = 600;

export const feed = new Feed();

export function useLive<S>(select: (state: LiveState) => S): S {
  return useStore(feed.live, select);
}

export function useLink<S>(select: (link: Link) => S): S {
  return useStore(feed.link, select);
}

/** The id of the run on the screen. */
export function useRun(): string | null {
  return useLive((state) => state.run);
}

/** All schedulers of the run, in the order of its spec. */
export function useAllSchedulers(): string[] {
  return useLive(useShallow((state) => state.spec?.schedulers ?? Object.keys(state.comparison)));
}

/** The schedulers that are compared: all but suspended ones. */
export function useSchedulers(): string[] {
  const names = useAllSchedulers();
  const suspended = useLive(useShallow((state) => Object.keys(state.suspended)));
  return useMemo(() => names.filter((name) => !suspended.includes(name)), [names, suspended]);
}

/** The device types of the run's cluster. */
export function useDeviceTypes(): DeviceType[] {
  return useLive((state) => state.types);
}

/** Every scheduler's row, in the order of the run's spec. */
export function useComparison(): ComparisonRow[] {
  const rows = useLive(useShallow((state) => state.comparison));
  const names = useSchedulers();
  return useMemo(() => names.flatMap((name) => (rows[name] ? [rows[name]] : [])), [rows, names]);
}

/** A new event is fetched from the store earlier than by the next poll. */
export function useRefetchOnNotification(
  refetch: () => void,
  wanted: (note: Notification) => boolean = () => true,
): void {
  const newest = useLive((live) => live.notifications.find(wanted)?.at ?? 0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `newest` is the trigger.
  useEffect(() => {
    // The event is stored a moment after its notification.
    const timer = setTimeout(refetch, STORED_AFTER_MS);
    return () => clearTimeout(timer); // while many arrive, the poll is often enough
  }, [newest, refetch]);
}

export type { ComparisonRow, LatestResult, Notification } from "../api/types";
export type { Connection } from "./connection";
