import type { RunState } from "../api/types";

const TONE: Record<RunState, string> = {
  running: "bg-good text-good",
  paused: "bg-warn text-warn",
  stopped: "bg-faint text-faint",
  completed: "bg-accent text-accent",
};

export function StateDot({ state, still = false }: { state: RunState | null; still?: boolean }) {
  const tone = state ? TONE[state] : "bg-faint text-faint";
  const pulse = state === "running" && !still ? "pulse-ring" : "";
  return <span aria-hidden className={`inline-block size-2 shrink-0 rounded-full ${tone} ${pulse}`} />;
}
