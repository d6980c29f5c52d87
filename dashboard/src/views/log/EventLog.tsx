import { useMutation } from "@tanstack/react-query";
import { ArrowUp, Pause, Play } from "lucide-react";
import { type ReactNode, type UIEvent, useMemo, useRef, useState } from "react";
import { toastFailure } from "../../api/polling";
import { runLabel, useRuns } from "../../api/runs";
import type { StoredEvent } from "../../api/types";
import { clock, dateTime } from "../../format";
import { Badge, Button, type Choice, Link, Select, type Tone, Widget } from "../../ui";
import { setParameters, useParameter } from "../../url";
import { useSelectedRun } from "../selectedRun";
import { choices, filterEvents } from "./events";
import { useEvents } from "./useEvents";

/** The known kinds; others appear in the filter once they are loaded. */
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
  const selected = useSelectedRun();
  const run = scope === "run" ? selected : scope;
  // The key: with another filter, the list starts at the top again.
  return <List key={`${run}|${kind}`} run={run} kind={kind} />;
}

function List({ run, kind }: { run: string | null; kind: string | null }) {
  const box = useRef<HTMLDivElement>(null);
  const [paused, setPaused] = useState(false);
  const [scrolled, setScrolled] = useState(false);
  const [text, setText] = useState("");
  const service = useParameter("service") ?? "";
  const { source, shown, hidden, older } = useEvents(run, kind, paused || scrolled);
  const matches = useMemo(() => filterEvents(shown, { service, text }), [shown, service, text]);
  const services = choices(
    shown.map((event) => event.service),
    service,
  );
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
      caption="Newest first. Red events are problems."
      source={source}
      actions={
        <Button
          className="h-8!"
          aria-pressed={paused}
          data-testid="log-pause"
          icon={paused ? <Play aria-hidden className="size-3.5" /> : <Pause aria-hidden className="size-3.5" />}
          onClick={() => setPaused(!paused)}
        >
          {paused ? "Follow" : "Pause"}
        </Button>
      }
    >
      <div className="flex h-full min-h-0 flex-col gap-3">
        <Filters kind={kind} kinds={kinds} services={services} service={service} text={text} onText={setText} />
        <div className="relative min-h-0 flex-1">
          {hidden > 0 && <ShowNew count={hidden} onShow={follow} />}
          <div
            ref={box}
            className="h-full overflow-auto rounded-lg"
            tabIndex={0}
            role="region"
            aria-label="Events, newest first"
            onScroll={onScroll}
          >
            <ol>
              {matches.map((event) => (
                <Entry key={event.sequence} event={event} />
              ))}
            </ol>
            {matches.length === 0 && <NoEvents any={shown.length > 0} />}
            {older && <LoadOlder load={older} />}
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
  const known = runs.map((each) => ({ value: each.run, label: runLabel(each) }));
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
          ...known,
        ]}
        onChoose={(value) => setParameters({ events: value })}
      />
      <Select
        label="Kind"
        value={kind ?? ""}
        choices={[{ value: "", label: "All kinds" }, ...kinds.map(toChoice)]}
        onChoose={(value) => setParameters({ kind: value })}
      />
      <Select
        label="Service"
        value={service}
        choices={[{ value: "", label: "All services" }, ...services.map(toChoice)]}
        onChoose={(value) => setParameters({ service: value })}
      />
      <input
        type="search"
        aria-label="Search events"
        placeholder="Search…"
        className="h-8 min-w-24 flex-1 rounded-lg border border-line bg-raised px-2.5 text-xs placeholder:text-faint hover:border-line-strong sm:max-w-64"
        value={text}
        onChange={(event) => onText(event.target.value)}
      />
    </div>
  );
}

function toChoice(value: string): Choice {
  return { value, label: value.replaceAll("_", " ") };
}

function Entry({ event }: { event: StoredEvent }) {
  const line = (
    <>
      <time
        className="num shrink-0 text-faint"
        dateTime={new Date(event.at * 1000).toISOString()}
        title={dateTime(event.at)}
      >
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
      {Object.keys(event.data).length > 0 ? (
        <Details line={<summary className={`${shape} cursor-pointer list-none`}>{line}</summary>} event={event} />
      ) : (
        <div className={shape}>{line}</div>
      )}
    </li>
  );
}

function Details({ line, event }: { line: ReactNode; event: StoredEvent }) {
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

function ShowNew({ count, onShow }: { count: number; onShow: () => void }) {
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

function NoEvents({ any }: { any: boolean }) {
  return (
    <p className="px-2 py-10 text-center text-muted">
      {any ? "No loaded event matches this filter." : "No events yet."}
    </p>
  );
}

function LoadOlder({ load }: { load: () => Promise<void> }) {
  const { mutate, isPending } = useMutation({
    mutationFn: load,
    onError: (error) => toastFailure("Could not load older events", error),
  });
  return (
    <div className="p-3 text-center">
      <Button disabled={isPending} onClick={() => mutate()}>
        {isPending ? "Loading…" : "Older events"}
      </Button>
    </div>
  );
}
