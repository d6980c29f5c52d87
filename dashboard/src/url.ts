/** View, run and filters live in the address, so that a screen can be kept and sent. */
import { type MouseEvent, useSyncExternalStore } from "react";

export type Parameters = Record<string, string>;
export type Change = Record<string, string | number | null | undefined>;

export const DEFAULT_VIEW = "arena";

export function parse(search: string): Parameters {
  const found: Parameters = {};
  for (const [key, value] of new URLSearchParams(search)) if (value !== "") found[key] = value;
  return found;
}

export function format(parameters: Parameters): string {
  const query = new URLSearchParams();
  // The view comes first: it is what a person looks for in an address.
  for (const key of ["view", "run", ...Object.keys(parameters)]) {
    const value = parameters[key];
    if (value !== undefined && value !== "" && !query.has(key)) query.set(key, value);
  }
  const text = query.toString();
  return text ? `/?${text}` : "/";
}

/** Null removes a parameter. */
export function changed(parameters: Parameters, change: Change): Parameters {
  const next = { ...parameters };
  for (const [key, value] of Object.entries(change)) {
    if (value === null || value === undefined || value === "") delete next[key];
    else next[key] = String(value);
  }
  return next;
}

/** Another view keeps the run and the weights; filters belong to the view that is left. */
export function viewAddress(parameters: Parameters, view: string, change: Change = {}): Parameters {
  const kept: Parameters = {};
  for (const key of ["run", "weights"]) if (parameters[key]) kept[key] = parameters[key];
  return changed({ ...kept, view }, change);
}

const listeners = new Set<() => void>();
let last = { search: "", parameters: {} as Parameters };

export function current(): Parameters {
  const search = window.location.search;
  if (search !== last.search) last = { search, parameters: parse(search) };
  return last.parameters;
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  window.addEventListener("popstate", listener);
  return () => {
    listeners.delete(listener);
    window.removeEventListener("popstate", listener);
  };
}

function go(address: string, replace: boolean): void {
  if (replace) window.history.replaceState(null, "", address);
  else window.history.pushState(null, "", address);
  for (const listener of [...listeners]) listener();
}

export function useParameters(): Parameters {
  return useSyncExternalStore(subscribe, current);
}

export function useParameter(key: string): string | null {
  return useSyncExternalStore(subscribe, () => current()[key] ?? null);
}

/** Change filters of the present view; `replace` for what should not fill the history. */
export function setParameters(change: Change, replace = true): void {
  go(format(changed(current(), change)), replace);
}

export function openView(view: string, change: Change = {}): void {
  go(format(viewAddress(current(), view, change)), false);
  window.scrollTo(0, 0);
}

/** A plain click stays in the page; a modified one does what the browser does. */
export function followInPage(event: MouseEvent<HTMLAnchorElement>): void {
  if (event.defaultPrevented || event.button !== 0) return;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  go(event.currentTarget.search ? `/${event.currentTarget.search}` : "/", false);
  window.scrollTo(0, 0);
}
