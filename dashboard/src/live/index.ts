/** The one feed of this page, and the hooks that read it. */
import { useMemo } from "react";
import { shallowEqual, useSelected } from "../store";
import { Feed, type Link } from "./feed";
import type { ComparisonRow } from "./messages";
import type { LiveState } from "./state";

export const feed = new Feed();

export function useLive<S>(
  select: (state: LiveState) => S,
  same?: (left: S, right: S) => boolean,
): S {
  return useSelected(feed.live, select, same);
}

export function useLink<S>(select: (link: Link) => S): S {
  return useSelected(feed.link, select);
}

/** The id of the run on the screen. */
export function useRun(): string | null {
  return useLive((state) => state.run);
}

/** The competitors of the run: those of its spec, in its order. */
export function useSchedulers(): string[] {
  return useLive(
    (state) => state.spec?.schedulers ?? Object.keys(state.comparison),
    (left, right) => left.length === right.length && left.every((name, at) => name === right[at]),
  );
}

/** Every scheduler's row, in the order of the run's spec. */
export function useComparison(): ComparisonRow[] {
  const rows = useLive((state) => state.comparison, shallowEqual);
  const names = useSchedulers();
  return useMemo(
    () => names.flatMap((name) => (rows[name] ? [rows[name]] : [])),
    [rows, names],
  );
}

export type { Connection } from "./connection";
export type { ComparisonRow, LatestResult, Notification } from "./messages";
