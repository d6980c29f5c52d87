import { CirclePlus, Pause, Play, RotateCcw, Square } from "lucide-react";
import { useEffect, useState } from "react";
import { ApiError, path, post } from "../api/client";
import { isActive } from "../api/runs";
import type { Run, RunState } from "../api/types";
import { feed, useLive, useRun } from "../live";
import { openView } from "../url";
import { Button } from "../ui/Button";
import { toast } from "../ui/Toast";

type Command = "pause" | "resume" | "stop" | "start";

const DOING: Record<Command, string> = {
  pause: "pausing…",
  resume: "resuming…",
  stop: "stopping…",
  start: "starting…",
};

/** A command shows as pending until the gateway has answered, and never as done before. */
function useCommand() {
  const [pending, setPending] = useState<Command | null>(null);
  const send = async (command: Command, ask: () => Promise<Run>) => {
    setPending(command);
    try {
      const run = await ask();
      feed.answered(run.run, run.state);
      return run;
    } catch (error) {
      const missing = error instanceof ApiError && error.status === 401;
      const reason = error instanceof Error ? error.message : String(error);
      toast(missing ? "This gateway wants a token: enter it in the settings." : `Could not ${command}: ${reason}`, "bad");
      return null;
    } finally {
      setPending(null);
    }
  };
  return { pending, send };
}

export function Controls() {
  const run = useRun();
  const state = useLive((live) => live.state);
  const spec = useLive((live) => live.spec);
  const { pending, send } = useCommand();
  const move = (command: Command) =>
    send(command, () => post<Run>(path(`/api/simulation/${command}`, { run })));
  const again = async () => {
    const started = await send("start", () => post<Run>("/api/runs", spec ?? undefined));
    if (started) openView("arena", { run: started.run });
  };
  const busy = pending !== null;
  return (
    <div className="flex items-center gap-2">
      <StateWord state={state} pending={pending} />
      {state === "running" && (
        <Button data-testid="pause" disabled={busy} icon={<Pause aria-hidden className="size-4" />} onClick={() => void move("pause")}>
          <span className="max-sm:sr-only">Pause</span>
        </Button>
      )}
      {state === "paused" && (
        <Button data-testid="resume" look="primary" disabled={busy} icon={<Play aria-hidden className="size-4" />} onClick={() => void move("resume")}>
          <span className="max-sm:sr-only">Resume</span>
        </Button>
      )}
      {isActive(state) && <Stop key={run} disabled={busy} stop={() => void move("stop")} />}
      {!isActive(state) && (
        <Button
          data-testid="start"
          disabled={busy}
          icon={spec ? <RotateCcw aria-hidden className="size-4" /> : <Play aria-hidden className="size-4" />}
          title={spec ? "Start a run with the same spec" : "Start the default run"}
          onClick={() => void again()}
        >
          <span className="max-sm:sr-only">{spec ? "Run again" : "Start"}</span>
        </Button>
      )}
      <Button data-testid="new-run" look="ghost" label="New run" icon={<CirclePlus aria-hidden className="size-4.5" />} onClick={() => openView("new")} />
    </div>
  );
}

function StateWord({ state, pending }: { state: RunState | null; pending: Command | null }) {
  return (
    <span
      data-testid="run-state"
      data-state={state ?? "none"}
      role="status"
      aria-live="polite"
      className={`text-[0.8125rem] whitespace-nowrap max-sm:sr-only ${pending ? "text-warn" : "text-muted"}`}
    >
      {pending ? DOING[pending] : (state ?? "no run")}
    </span>
  );
}

/** Ending a run cannot be undone, so it asks once, in place. */
function Stop({ disabled, stop }: { disabled: boolean; stop: () => void }) {
  const [asking, setAsking] = useState(false);
  useEffect(() => {
    if (!asking) return;
    const timer = setTimeout(() => setAsking(false), 5_000);
    return () => clearTimeout(timer);
  }, [asking]);
  if (!asking) {
    return (
      <Button data-testid="stop" disabled={disabled} icon={<Square aria-hidden className="size-3.5" />} onClick={() => setAsking(true)}>
        <span className="max-sm:sr-only">Stop</span>
      </Button>
    );
  }
  return (
    <Button
      data-testid="stop-confirm"
      look="danger"
      autoFocus
      disabled={disabled}
      onBlur={() => setAsking(false)}
      onClick={() => {
        setAsking(false);
        stop();
      }}
    >
      End for good?
    </Button>
  );
}
