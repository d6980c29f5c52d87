import { ArrowUp, Pause, Play } from "lucide-react";
import { type ReactNode, type UIEvent, useMemo, useRef, useState } from "react";
import { useRuns } from "../../api/runs";
import type { ArenaEvent } from "../../api/types";
import { clock, dateTime } from "../../format";
import { Badge, Button, Link, Select, toast, type Tone, Widget } from "../../ui";
import { setParameters, useParameter } from "../../url";
import { useChosenRun } from "../chosenRun";
import { runLabel } from "../history/RunList";
import { choices, matching } from "./events";
import { useEvents } from "./useEvents";

/** Kinds that the services tell today; others appear in the filter once they were seen. */
const KINDS = ["run", "model", "model_refused", "policy_failed", "rejected", "service"];

const TONE: Record<string, Tone> = {
  run: "accent",
  model: "accent2",
  service: "neutral",
  rejected: "bad",
  policy_failed: "bad",
  model_refused: "warn",
};

export function EventLog() {
  const scope = useParameter("events");
  const kind = useParameter("kind");
  const chosen = useChosenRun();
  const run = scope === "run" ? chosen : scope;
  // Another filter is another list: it starts at the top.
  return <List key={`${run}|${kind}`} run={run} kind={kind} />;
}

function List({ run, kind }: { run: string | null; kind: string | null }) {
  const box = useRef<HTMLDivElement>(null);
  const [paused, setPaused] = useState(false);
  const [scrolled, setScrolled] = useState(false);
  const [text, setText] = useState("");
  const service = useParameter("service") ?? "";
  const { source, shown, waiting, older } = useEvents(run, kind, paused || scrolled);
  const found = useMemo(() => matching(shown, { service, text }), [shown, service, text]);
  const services = choices(shown.map((event) => event.service), service);
  const kinds = choices([...KINDS, ...shown.map((event) => event.kind)], kind ?? "");
  const follow = () => {
    setPaused(false);
    setScrolled(false);
    box.current?.scrollTo(0, 0);
  };
  const onScroll = (event: UIEvent<HTMLElement>) => setScrolled(event.currentTarget.scrollTop > 24);
  return (
    <Widget
      id="events"
      title="Events"
      hint="What happened, newest first. Runs, models and services that come up are normal; anything red wants a look."
      source={source}
      actions={
        <Button
          className="h-8!"
          aria-pressed={paused}
          data-testid="log-pause"
          icon={paused ? <Play aria-hidden className="size-3.5" /> : <Pause aria-hidden className="size-3.5" />}
          onClick={() => setPaused(!paused)}
        >
          {paused ? "Follow" : "Hold"}
        </Button>
      }
    >
      <div className="flex h-full min-h-0 flex-col gap-3">
        <Filters kind={kind} kinds={kinds} services={services} service={service} text={text} onText={setText} />
        <div className="relative min-h-0 flex-1">
          {waiting > 0 && <Waiting count={waiting} onShow={follow} />}
          <div
            ref={box}
            className="h-full overflow-auto rounded-lg"
            tabIndex={0}
            role="region"
            aria-label="Events, newest first"
            onScroll={onScroll}
          >
            <ol>
              {found.map((event) => (
                <Entry key={event.sequence} event={event} />
              ))}
            </ol>
            {found.length === 0 && <Nothing any={shown.length > 0} />}
            {older && <Older load={older} />}
          </div>
        </div>
      </div>
    </Widget>
  );
}

function Filters(props: {
  kind: string | null;
  kinds: string[];
  service: string;
  services: string[];
  text: string;
  onText: (text: string) => void;
}) {
  const runs = useRuns().data ?? [];
  const scope = useParameter("events") ?? "";
  const { kind, kinds, service, services, text, onText } = props;
  const offered = runs.map((each) => ({ value: each.run, label: runLabel(each) }));
  const missing = scope && scope !== "run" && !runs.some((each) => each.run === scope);
  return (
    <div className="flex flex-wrap items-center gap-2 px-1" role="search" aria-label="Filter events">
      <Select
        label="Run"
        className="max-w-44"
        value={scope}
        choices={[
          { value: "", label: "All runs" },
          { value: "run", label: "Run on the screen" },
          ...(missing ? [{ value: scope, label: scope }] : []),
          ...offered,
        ]}
        onChoose={(value) => setParameters({ events: value })}
      />
      <Select
        label="Kind"
        value={kind ?? ""}
        choices={[{ value: "", label: "All kinds" }, ...kinds.map(plain)]}
        onChoose={(value) => setParameters({ kind: value })}
      />
      <Select
        label="Service"
        value={service}
        choices={[{ value: "", label: "All services" }, ...services.map(plain)]}
        onChoose={(value) => setParameters({ service: value })}
      />
      <input
        type="search"
        aria-label="Find in the events"
        placeholder="Find…"
        className="h-8 min-w-24 flex-1 rounded-lg border border-line bg-raised px-2.5 text-xs placeholder:text-faint hover:border-line-strong sm:max-w-64"
        value={text}
        onChange={(event) => onText(event.target.value)}
      />
    </div>
  );
}

function plain(value: string): { value: string; label: string } {
  return { value, label: value.replaceAll("_", " ") };
}

function Entry({ event }: { event: ArenaEvent }) {
  const line = (
    <>
      <time className="num shrink-0 text-faint" dateTime={new Date(event.at * 1000).toISOString()} title={dateTime(event.at)}>
        {clock(event.at)}
      </time>
      <Badge tone={TONE[event.kind] ?? "neutral"}>{event.kind.replaceAll("_", " ")}</Badge>
      <span className="shrink-0 text-xs text-muted">{event.service}</span>
      <span className="min-w-0 flex-1 basis-64 break-words">{event.message}</span>
      {event.run && <span className="font-mono text-[0.6875rem] text-faint max-sm:hidden">{event.run}</span>}
    </>
  );
  const shape = "flex flex-wrap items-baseline gap-x-3 gap-y-0.5 px-2 py-1.5 text-[0.8125rem]";
  return (
    <li
      data-testid="event"
      data-kind={event.kind}
      className="border-b border-line [contain-intrinsic-size:auto_2.1rem] [content-visibility:auto] hover:bg-sunken"
    >
      {event.data && Object.keys(event.data).length > 0 ? (
        <Details line={<summary className={`${shape} cursor-pointer list-none`}>{line}</summary>} event={event} />
      ) : (
        <div className={shape}>{line}</div>
      )}
    </li>
  );
}

function Details({ line, event }: { line: ReactNode; event: ArenaEvent }) {
  return (
    <details>
      {line}
      <div className="px-2 pb-2">
        {event.run && (
          <Link view="history" change={{ run: event.run }} className="text-xs text-accent hover:underline">
            run {event.run}
          </Link>
        )}
        <pre className="mt-1 max-h-64 overflow-auto rounded-lg bg-sunken p-2 font-mono text-xs break-words whitespace-pre-wrap text-muted">
          {JSON.stringify(event.data, null, 2)}
        </pre>
      </div>
    </details>
  );
}

function Waiting({ count, onShow }: { count: number; onShow: () => void }) {
  return (
    <button
      type="button"
      className="absolute top-2 left-1/2 z-2 inline-flex -translate-x-1/2 items-center gap-1.5 rounded-full bg-accent px-3 py-1 text-xs font-semibold text-on-accent"
      onClick={onShow}
    >
      <ArrowUp aria-hidden className="size-3.5" />
      {count} new
    </button>
  );
}

function Nothing({ any }: { any: boolean }) {
  return (
    <p className="px-2 py-10 text-center text-muted">
      {any ? "No event that is loaded fits this filter." : "Nothing has happened yet."}
    </p>
  );
}

function Older({ load }: { load: () => Promise<void> }) {
  const [busy, setBusy] = useState(false);
  const go = async () => {
    setBusy(true);
    try {
      await load();
    } catch (error) {
      toast(`Older events could not be loaded: ${error instanceof Error ? error.message : String(error)}`, "bad");
    } finally {
      setBusy(false);
    }
  };
  return (
    <div className="p-3 text-center">
      <Button disabled={busy} onClick={() => void go()}>
        {busy ? "Loading…" : "Older events"}
      </Button>
    </div>
  );
}
