/** Checks a draft at the gateway, a moment after the last key. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { post } from "../../api/client";
import type { RunSpec, SpecCheck } from "../../api/types";
import { type Draft, valueAt } from "./draft";

const DEBOUNCE_MS = 250;

export interface DraftCheck {
  /** The result is about the current draft. */
  current: boolean;
  ok: boolean;
  problems: string[];
  /** The draft that the problems are about; it may be older than the one on the screen. */
  checked: Draft;
  /** The last valid draft with its defaults; before one was valid, the defaults of its preset. */
  complete: RunSpec | null;
  /** Why the gateway could not check. */
  failure: string | null;
}

/** Outside of the view: an invalid draft keeps the defaults of the last valid one after Back, too. */
let lastValid: RunSpec | null = null;

export function useSpecCheck(draft: Draft): DraftCheck {
  const debounced = useDebounced(draft);
  const { data, failureReason, isPlaceholderData } = useQuery({
    queryKey: ["/api/runs/check", debounced],
    queryFn: ({ signal }) => checkOf(debounced, signal),
    placeholderData: keepPreviousData,
  });
  const defaults = useDefaults(draft);
  if (data?.spec) lastValid = data.spec;
  const answered = data !== undefined && !isPlaceholderData;
  return {
    current: debounced === draft && (answered || failureReason !== null),
    ok: data?.ok ?? false,
    problems: failureReason ? [] : (data?.problems ?? []),
    checked: data?.draft ?? debounced,
    complete: lastValid ?? defaults,
    failure: failureReason?.message ?? null,
  };
}

async function checkOf(draft: Draft, signal: AbortSignal): Promise<SpecCheck & { draft: Draft }> {
  return { ...(await post<SpecCheck>("/api/runs/check", draft, { signal })), draft };
}

/** Of the draft's preset alone: known also while other fields are invalid. */
function useDefaults(draft: Draft): RunSpec | null {
  const preset = valueAt(draft, "workload.preset");
  const part = typeof preset === "string" ? { workload: { preset } } : {};
  const { data } = useQuery({
    queryKey: ["/api/runs/check", part],
    queryFn: ({ signal }) => checkOf(part, signal),
    staleTime: Number.POSITIVE_INFINITY,
  });
  return data?.spec ?? null;
}

function useDebounced<T>(value: T): T {
  const [debounced, setDebounced] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setDebounced(value), DEBOUNCE_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return debounced;
}
