/** GET that repeats: shared by all who ask for the same path, quiet while nobody looks. */
import { useEffect, useRef, useSyncExternalStore } from "react";
import { feed } from "../live";
import { ApiError, fetchText } from "./client";

export interface Polled<T> {
  /** The last good answer; it stays while a newer one fails. */
  data: T | null;
  error: ApiError | null;
  loading: boolean;
  /** The newest answer failed or belongs to other parameters, and `data` is an older one. */
  stale: boolean;
  refetch: () => void;
}

interface Entry {
  path: string;
  text: string;
  data: unknown;
  error: ApiError | null;
  fetching: AbortController | null;
  timer: ReturnType<typeof setTimeout> | undefined;
  failures: number;
  /** How often each reader wants it; the most eager one counts. */
  readers: Map<symbol, number>;
  listeners: Set<() => void>;
  usedAt: number;
  version: number;
}

const MAX_IDLE_ENTRIES = 40;
const LONGEST_PAUSE_MS = 30_000;
const entries = new Map<string, Entry>();

function entryOf(path: string): Entry {
  let entry = entries.get(path);
  if (!entry) {
    entry = {
      path,
      text: "",
      data: null,
      error: null,
      fetching: null,
      timer: undefined,
      failures: 0,
      readers: new Map(),
      listeners: new Set(),
      usedAt: Date.now(),
      version: 0,
    };
    entries.set(path, entry);
  }
  return entry;
}

/** Entries that nobody reads are kept for a way back, but not without limit. */
function forgetIdle(): void {
  const idle = [...entries.values()].filter((entry) => entry.readers.size === 0);
  idle.sort((left, right) => left.usedAt - right.usedAt);
  for (const entry of idle.slice(0, Math.max(0, idle.length - MAX_IDLE_ENTRIES))) {
    entries.delete(entry.path);
  }
}

function changed(entry: Entry): void {
  entry.version += 1;
  for (const listener of [...entry.listeners]) listener();
}

async function fetchNow(entry: Entry): Promise<void> {
  clearTimeout(entry.timer);
  if (entry.fetching) return;
  const controller = new AbortController();
  entry.fetching = controller;
  try {
    const text = await fetchText(entry.path, { signal: controller.signal });
    const news = text !== entry.text || entry.error !== null;
    if (text !== entry.text) {
      entry.text = text;
      entry.data = JSON.parse(text);
    }
    entry.error = null;
    entry.failures = 0;
    entry.fetching = null;
    if (news) changed(entry);
  } catch (error) {
    entry.fetching = null;
    if (controller.signal.aborted) return;
    entry.failures += 1;
    entry.error =
      error instanceof ApiError
        ? error
        : new ApiError({ title: "The answer cannot be read", status: 0, detail: String(error) });
    changed(entry);
  }
  schedule(entry);
}

function schedule(entry: Entry): void {
  clearTimeout(entry.timer);
  if (entry.readers.size === 0 || document.hidden) return;
  const wanted = [...entry.readers.values()].filter((every) => every > 0);
  const every = wanted.length ? Math.min(...wanted) : entry.error ? 4_000 : 0;
  if (every === 0) return;
  const pause = Math.min(LONGEST_PAUSE_MS, every * 2 ** Math.min(entry.failures, 5));
  entry.timer = setTimeout(() => void fetchNow(entry), Math.max(pause, every));
}

function read(entry: Entry, every: number, reader: symbol): () => void {
  entry.readers.set(reader, every);
  entry.usedAt = Date.now();
  void fetchNow(entry);
  return () => {
    entry.readers.delete(reader);
    entry.usedAt = Date.now();
    if (entry.readers.size > 0) return;
    clearTimeout(entry.timer);
    entry.fetching?.abort();
    entry.fetching = null;
    forgetIdle();
  };
}

function refetchRead(): void {
  for (const entry of entries.values()) {
    if (entry.readers.size > 0) void fetchNow(entry);
  }
}

let listening = false;

/** Coming back to the page, or back on line, what is on the screen is fetched at once. */
function listen(): void {
  if (listening) return;
  listening = true;
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) refetchRead();
  });
  let epoch = feed.link.get().epoch;
  feed.link.subscribe(() => {
    const now = feed.link.get().epoch;
    if (now !== epoch && epoch > 0) refetchRead();
    epoch = now;
  });
}

const NOTHING = { subscribe: () => () => {}, version: () => -1 };

/**
 * Poll `path` every `every` ms (0: once). A path of null asks nothing. While a new path has no
 * answer yet, `data` is the old path's and `stale` is set, so that a chart never flashes empty.
 */
export function usePolled<T>(path: string | null, every: number): Polled<T> {
  const entry = path === null ? null : entryOf(path);
  useSyncExternalStore(
    (listener) => {
      if (!entry) return NOTHING.subscribe();
      entry.listeners.add(listener);
      return () => entry.listeners.delete(listener);
    },
    entry ? () => entry.version : NOTHING.version,
  );
  useEffect(() => {
    if (path === null) return;
    listen();
    return read(entryOf(path), every, Symbol(path));
  }, [path, every]);

  const subject = path && subjectOf(path);
  const last = useRef<{ subject: string | null; data: T | null }>({ subject: null, data: null });
  const own = (entry?.data ?? null) as T | null;
  if (own !== null) last.current = { subject, data: own };
  else if (last.current.subject !== subject) last.current = { subject, data: null };
  const { data } = last.current;
  return {
    data,
    error: entry?.error ?? null,
    loading: path !== null && data === null && !entry?.error,
    stale: data !== null && (own === null || entry?.error !== null),
    refetch: () => entry && void fetchNow(entry),
  };
}

/** What a path is about. Another run's numbers must not stand in for this one's. */
function subjectOf(path: string): string {
  const [base, query] = path.split("?");
  return `${base}#${new URLSearchParams(query).get("run") ?? ""}`;
}
