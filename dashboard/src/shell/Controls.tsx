import { useMutation } from "@tanstack/react-query";
import { CirclePlus, Pause, Play, RotateCcw, Square } from "lucide-react";
import { useEffect, useState } from "react";
import { path, post } from "../api/client";
import { toastFailure } from "../api/polling";
import { isActive } from "../api/runs";
import type { Run, RunState } from "../api/types";
import { feed, useLink, useLive, useRun } from "../live";
import { Button } from "../ui/Button";
import { openView } from "../url";

type Command = "pause" | "resume" | "stop" | "start";

const PENDING: Record<Command, string> = {
  pause: "pausing…",
  resume: "resuming…",
  stop: "stopping…",
  start: "starting…",
};

export function Controls() {
  const run = useRun();
  const state = useLive((live) => live.state);
  const spec = useLive((live) => live.spec);
  const connecting = useLink((link) => !link.unknownRun) && state === null;
  const { mutate, isPending, variables } = useMutation({
    mutationFn: (command: Command) =>
      command === "start"
        ? post<Run>("/api/runs", spec ?? undefined)
        : post<Run>(path(`/api/simulation/${command}`, { run })),
    onSuccess: (answer, command) => {
      feed.setRunState(answer.run, answer.state);
      if (command === "start") openView("arena", { run: answer.run });
    },
    onError: (error, command) => toastFailure(`Could not ${command} the run`, error),
  });
  return (
    <div className="flex items-center gap-2">
      <StateText state={state} connecting={connecting} pending={isPending ? variables : null} />
      {state === "running" && (
        <Button
          data-testid="pause"
          disabled={isPending}
          icon={<Pause aria-hidden className="size-4" />}
          onClick={() => mutate("pause")}
        >
          <span className="max-sm:sr-only">Pause</span>
        </Button>
      )}
      {state === "paused" && (
        <Button
          data-testid="resume"
          variant="primary"
          disabled={isPending}
          icon={<Play aria-hidden className="size-4" />}
          onClick={() => mutate("resume")}
        >
          <span className="max-sm:sr-only">Resume</span>
        </Button>
      )}
      {isActive(state) && <Stop key={run} disabled={isPending} stop={() => mutate("stop")} />}
      {!isActive(state) && !connecting && (
        <Button
          data-testid="start"
          disabled={isPending}
          icon={spec ? <RotateCcw aria-hidden className="size-4" /> : <Play aria-hidden className="size-4" />}
          title={spec ? "Start a run with the same spec" : "Start the default run"}
          onClick={() => mutate("start")}
        >
          <span className="max-sm:sr-only">{spec ? "Run again" : "Start"}</span>
        </Button>
      )}
      <Button
        data-testid="new-run"
        variant="ghost"
        label="New run"
        icon={<CirclePlus aria-hidden className="size-4.5" />}
        onClick={() => openView("new")}
      />
    </div>
  );
}

function StateText({
  state,
  connecting,
  pending,
}: {
  state: RunState | null;
  /** Before the first message about a run, its state is not known. */
  connecting: boolean;
  pending: Command | null;
}) {
  const pretraining = useLive((live) => live.pretraining.length > 0);
  const shown =
    pretraining && state === "running" ? "pre-training" : (state ?? (connecting ? "connecting…" : "no run"));
  return (
    <span
      data-testid="run-state"
      data-state={state ?? "none"}
      role="status"
      aria-live="polite"
      className={`text-[0.8125rem] whitespace-nowrap max-sm:sr-only ${pending ? "text-warn" : "text-muted"}`}
    >
      {pending ? PENDING[pending] : shown}
    </span>
  );
}

/** Asks once: a stopped run cannot be resumed. */
function Stop({ disabled, stop }: { disabled: boolean; stop: () => void }) {
  const [confirming, setConfirming] = useState(false);
  useEffect(() => {
    if (!confirming) return;
    const timer = setTimeout(() => setConfirming(false), 5_000);
    return () => clearTimeout(timer);
  }, [confirming]);
  if (!confirming) {
    return (
      <Button
        data-testid="stop"
        disabled={disabled}
        icon={<Square aria-hidden className="size-3.5" />}
        onClick={() => setConfirming(true)}
      >
        <span className="max-sm:sr-only">Stop</span>
      </Button>
    );
  }
  return (
    <Button
      data-testid="stop-confirm"
      variant="danger"
      autoFocus
      disabled={disabled}
      onBlur={() => setConfirming(false)}
      onClick={() => {
        setConfirming(false);
        stop();
      }}
    >
      Stop for good?
    </Button>
  );
}
