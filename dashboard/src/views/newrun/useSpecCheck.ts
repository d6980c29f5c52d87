/** Checks a draft at the gateway, a moment after the last key. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { post } from "../../api/client";
import type { RunSpec, SpecCheck } from "../../api/types";
import type { Draft } from "./draft";

const DEBOUNCE_MS = 250;

export interface DraftCheck {
  /** The result is about the current draft. */
  current: boolean;
  ok: boolean;
  problems: string[];
  /** The last valid draft, with its defaults. */
  complete: RunSpec | null;
  /** Why the gateway could not check. */
  failure: string | null;
}

export function useSpecCheck(draft: Draft): DraftCheck {
  const debounced = useDebounced(draft);
  const { data, failureReason, isPlaceholderData } = useQuery({
    queryKey: ["/api/runs/check", debounced],
    queryFn: ({ signal }) => post<SpecCheck>("/api/runs/check", debounced, signal),
    placeholderData: keepPreviousData,
  });
  const lastValid = useRef<RunSpec | null>(null);
  if (data?.spec) lastValid.current = data.spec;
  const answered = data !== undefined && !isPlaceholderData;
  return {
    current: debounced === draft && (answered || failureReason !== null),
    ok: data?.ok ?? false,
    problems: failureReason ? [] : (data?.problems ?? []),
    complete: lastValid.current,
    failure: failureReason?.message ?? null,
  };
}

function useDebounced<T>(value: T): T {
  const [debounced, setDebounced] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setDebounced(value), DEBOUNCE_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return debounced;
}
