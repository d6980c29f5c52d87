/** The gateway's word on a draft, asked for a moment after the last key. */
import { useEffect, useState } from "react";
import { post } from "../../api/client";
import type { RunSpec, SpecCheck } from "../../api/types";
import type { Draft } from "./draft";

const DEBOUNCE_MS = 250;
const RETRY_MS = 3_000;

export interface Check {
  /** The answer is about the draft as it is now. */
  current: boolean;
  ok: boolean;
  problems: string[];
  filled: RunSpec | null;
  /** The gateway could not be asked. */
  failure: string | null;
}

const UNASKED: Check = { current: false, ok: false, problems: [], filled: null, failure: null };

export function useCheck(draft: Draft): Check {
  const [check, setCheck] = useState(UNASKED);
  const [asked, setAsked] = useState<Draft | null>(null);
  useEffect(() => {
    const controller = new AbortController();
    const answered = (answer: Omit<Check, "current" | "filled"> & { spec?: RunSpec | null }) => {
      if (controller.signal.aborted) return;
      const { spec, ...rest } = answer;
      setAsked(draft);
      setCheck((last) => ({ ...rest, current: true, filled: spec ?? last.filled }));
    };
    const ask = async () => {
      try {
        const { ok, problems, spec } = await post<SpecCheck>("/api/runs/check", draft, controller.signal);
        answered({ ok, problems, spec, failure: null });
      } catch (error) {
        answered({ ok: false, problems: [], failure: error instanceof Error ? error.message : String(error) });
        if (!controller.signal.aborted) timer = setTimeout(() => void ask(), RETRY_MS);
      }
    };
    let timer = setTimeout(() => void ask(), DEBOUNCE_MS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [draft]);
  return { ...check, current: asked === draft };
}
