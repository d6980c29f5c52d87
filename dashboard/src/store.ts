/** A small store outside of React: one value, subscribers, and a hook with a selector. */
import { useRef, useSyncExternalStore } from "react";

export interface Store<T> {
  get(): T;
  set(next: T): void;
  subscribe(listener: () => void): () => void;
}

export function createStore<T>(initial: T): Store<T> {
  let value = initial;
  const listeners = new Set<() => void>();
  return {
    get: () => value,
    set(next) {
      if (Object.is(next, value)) return;
      value = next;
      for (const listener of [...listeners]) listener();
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** Renders again only when the selected part differs. */
export function useSelected<T, S>(
  store: Store<T>,
  select: (value: T) => S,
  same: (left: S, right: S) => boolean = Object.is,
): S {
  const last = useRef<{ value: S } | null>(null);
  const read = () => {
    const next = select(store.get());
    if (last.current && same(last.current.value, next)) return last.current.value;
    last.current = { value: next };
    return next;
  };
  return useSyncExternalStore(store.subscribe, read, read);
}

/** Equal in every field, one level deep. */
export function shallowEqual(left: unknown, right: unknown): boolean {
  if (Object.is(left, right)) return true;
  if (typeof left !== "object" || typeof right !== "object" || !left || !right) return false;
  const keys = Object.keys(left);
  return (
    keys.length === Object.keys(right).length &&
    keys.every((key) =>
      Object.is((left as Record<string, unknown>)[key], (right as Record<string, unknown>)[key]),
    )
  );
}
