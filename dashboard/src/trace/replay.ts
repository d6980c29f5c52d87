/**
 * The trace that this page sends to a run. It goes on while other views are open, and ends with the page: then the run
 * is stopped, or it would wait for tasks for ever.
 */
import { create } from "zustand";
import { toastFailure } from "../api/polling";
import type { Run } from "../api/types";
import { count } from "../format";
import { toast } from "../ui";
import { openView } from "../url";
import type { Draft } from "../views/newrun/draft";
import { readTrace, sendTrace, startTrace, stopRun } from "./traceFile";

export interface Replay {
  name: string;
  tasks: number;
  sent: number;
  /** Null while it is being started. */
  run: string | null;
}

export const useReplay = create<{ replay: Replay | null }>(() => ({ replay: null }));

function show(change: Partial<Replay>): void {
  useReplay.setState(({ replay }) => ({ replay: replay && { ...replay, ...change } }));
}

/** Starts a run with the cluster, schedulers and learning of the draft, shows it and sends it the tasks of the file. */
export async function replayTrace(draft: Draft, file: File): Promise<void> {
  if (useReplay.getState().replay) return;
  useReplay.setState({ replay: { name: file.name, tasks: 0, sent: 0, run: null } });
  try {
    const trace = readTrace(file.name, await file.text());
    show({ tasks: trace.lines.length });
    const run = await startTrace(draft, trace);
    show({ run: run.run });
    openView("arena", { run: run.run });
    await sendOrStop(run, () => sendTrace(run, trace, (sent) => show({ sent })));
    toast(`${count(trace.lines.length)} tasks of ${trace.name} are sent`);
  } catch (error) {
    toastFailure("Could not replay the trace", error instanceof Error ? error : new Error(String(error)));
  }
  useReplay.setState({ replay: null });
}

async function sendOrStop({ run }: Run, send: () => Promise<void>): Promise<void> {
  const warn = (event: BeforeUnloadEvent) => event.preventDefault();
  const stop = () => void stopRun(run, true);
  window.addEventListener("beforeunload", warn);
  window.addEventListener("pagehide", stop);
  try {
    await send();
  } catch (error) {
    await stopRun(run).catch(() => undefined); // the reason why it could not be sent says more
    throw error;
  } finally {
    window.removeEventListener("beforeunload", warn);
    window.removeEventListener("pagehide", stop);
  }
}
