import { useEffect, useState } from "react";
import { type Connection, feed, useLink, useLive } from "../live";

const TEXT: Record<Connection, { label: string; tone: string; meaning: string }> = {
  connecting: { label: "Connecting", tone: "text-warn", meaning: "Waiting for the first update." },
  live: { label: "Live", tone: "text-good", meaning: "Updates arrive twice a second." },
  quiet: { label: "Quiet", tone: "text-accent", meaning: "Connected. Nothing is changing." },
  stale: { label: "Stale", tone: "text-warn", meaning: "The gateway has stopped sending updates." },
  reconnecting: { label: "Reconnecting", tone: "text-warn", meaning: "The connection was lost. Reconnecting." },
  offline: { label: "Offline", tone: "text-bad", meaning: "The gateway cannot be reached. Retrying." },
};

export function ConnectionBadge() {
  const connection = useLink((link) => link.connection);
  const { label, tone, meaning } = TEXT[connection];
  return (
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
    <button type="button" className="num underline hover:text-ink" onClick={() => feed.reconnect()}>
      {left > 0 ? `Retry in ${left} s` : "Retry now"}
    </button>
  );
}

/** The age of the numbers on the screen when updates no longer arrive, and when the next attempt is. */
export function StaleBanner() {
  const connection = useLink((link) => link.connection);
  const retryAt = useLink((link) => link.retryAt);
  const at = useLive((live) => live.at);
  const stale = connection === "stale" || connection === "reconnecting" || connection === "offline";
  if (!stale) return null;
  return (
    <p
      data-testid="stale"
      className="border-t border-warn/30 bg-[color-mix(in_oklab,var(--warn)_14%,var(--ground))] px-4 py-1 text-center text-xs text-warn"
    >
      {TEXT[connection].meaning}{" "}
      {at > 0 && <>The numbers are from {new Date(at * 1000).toLocaleTimeString("en-GB")}. </>}
      {retryAt !== null && <Retry at={retryAt} />}
    </p>
  );
}
