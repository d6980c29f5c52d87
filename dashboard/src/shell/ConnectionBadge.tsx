import { useEffect, useState } from "react";
import { type Connection, feed, useLink, useLive } from "../live";

const WORDS: Record<Connection, { label: string; tone: string; meaning: string }> = {
  connecting: { label: "Connecting", tone: "text-warn", meaning: "Waiting for the first picture." },
  live: { label: "Live", tone: "text-good", meaning: "Updates arrive as they happen." },
  quiet: { label: "Quiet", tone: "text-accent", meaning: "Connected; nothing is happening." },
  stale: { label: "Stale", tone: "text-warn", meaning: "The gateway has gone silent; numbers may be old." },
  reconnecting: { label: "Reconnecting", tone: "text-warn", meaning: "The line was lost; trying again." },
  offline: { label: "Offline", tone: "text-bad", meaning: "The gateway cannot be reached; still trying." },
};

export function ConnectionBadge() {
  const connection = useLink((link) => link.connection);
  const retryAt = useLink((link) => link.retryAt);
  const { label, tone, meaning } = WORDS[connection];
  return (
    <div className="flex items-center gap-2">
      <div
        data-testid="connection"
        data-state={connection}
        role="status"
        aria-live="polite"
        title={meaning}
        className={`inline-flex items-center gap-2 rounded-full border border-line bg-sunken px-3 py-1 text-xs font-medium ${tone}`}
      >
        <span aria-hidden className={`size-2 rounded-full bg-current ${connection === "live" ? "pulse-ring" : ""}`} />
        {label}
      </div>
      {retryAt !== null && connection !== "quiet" && <Retry at={retryAt} />}
    </div>
  );
}

function Retry({ at }: { at: number }) {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, []);
  const left = Math.max(0, Math.ceil((at - now) / 1000));
  return (
    <button type="button" className="num text-xs text-muted underline hover:text-ink" onClick={() => feed.reconnect()}>
      {left > 0 ? `in ${left} s` : "now"}
    </button>
  );
}

/** Says when the numbers on the screen were true, as soon as they are not fresh. */
export function FreshnessBanner() {
  const connection = useLink((link) => link.connection);
  const at = useLive((live) => live.at);
  const old = connection === "stale" || connection === "reconnecting" || connection === "offline";
  if (!old || at === 0) return null;
  return (
    <p data-testid="freshness" className="absolute inset-x-0 top-full border-b border-warn/30 bg-[color-mix(in_oklab,var(--warn)_14%,var(--ground))] px-4 py-1 text-center text-xs text-warn">
      {WORDS[connection].meaning} What you see is from {new Date(at * 1000).toLocaleTimeString("en-GB")}.
    </p>
  );
}
