/** View, run and filters are query parameters, so that a screen can be bookmarked and shared. */
import { navigate, useLocationProperty } from "wouter/use-browser-location";
import { feed, useRun } from "./live";

export type Parameters = Record<string, string>;
export type Change = Record<string, string | number | null | undefined>;

export const DEFAULT_VIEW = "arena";

export function parse(search: string): Parameters {
  return Object.fromEntries([...new URLSearchParams(search)].filter(([, value]) => value !== ""));
}

/** The view and the run come first: readers look for them in an address. */
export function format({ view = "", run = "", ...others }: Parameters): string {
  const filled = Object.entries({ view, run, ...others }).filter(([, value]) => value !== "");
  return filled.length ? `/?${new URLSearchParams(filled)}` : "/";
}

/** Null removes a parameter. */
export function changed(parameters: Parameters, change: Change): Parameters {
  const next = Object.entries({ ...parameters, ...change }).filter(([, value]) => (value ?? "") !== "");
  return Object.fromEntries(next.map(([key, value]) => [key, String(value)]));
}

/**
 * Another view keeps the run and what counts; filters belong to the view that is left. Without a run in the address
 * it is the one on the screen: whoever gets the link sees the same.
 */
export function viewAddress(
  parameters: Parameters,
  view: string,
  change: Change = {},
  shown: string | null = null,
): Parameters {
  const { run = shown ?? "", weights = "", by = "" } = parameters;
  return changed({ run, weights, by, view }, change);
}

function current(): Parameters {
  return parse(window.location.search);
}

export function useParameter(key: string): string | null {
  return useLocationProperty(() => current()[key] ?? null);
}

/** The address of another view of the same run. */
export function useViewAddress(view: string, change?: Change): string {
  const shown = useRun();
  return useLocationProperty(() => format(viewAddress(current(), view, change, shown)));
}

/** Changes filters of the current view; with `replace` false, Back undoes the change. */
export function setParameters(change: Change, replace = true): void {
  navigate(format(changed(current(), change)), { replace });
}

/** What was focused is gone with the view: the keyboard continues at the start of the new one. */
export function focusContent(view: string): void {
  if ((current().view ?? DEFAULT_VIEW) !== view) document.getElementById("content")?.focus({ preventScroll: true });
}

export function openView(view: string, change: Change = {}): void {
  focusContent(view);
  navigate(format(viewAddress(current(), view, change, feed.live.getState().run)));
  window.scrollTo(0, 0);
}
