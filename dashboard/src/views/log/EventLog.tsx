import { useMutation } from "@tanstack/react-query";
import { ArrowUp, Pause, Play } from "lucide-react";
import { memo, type ReactNode, type UIEvent, useEffect, useMemo, useRef, useState } from "react";
import { toastFailure } from "../../api/polling";
import { runLabel, useRuns } from "../../api/runs";
import { choices, type EventGroup, groupEvents, toneOf } from "../../events";
import { clock, dateTime } from "../../format";
import { Badge, Button, type Choice, Link, Select, Widget } from "../../ui";
import { setParameters, useParameter } from "../../url";
import { useSelectedRun } from "../selectedRun";
import { PAGE, useEvents } from "./useEvents";

/** The known kinds; others appear in the filter once they are loaded. */
const KINDS = [
  "run",
  "model",
  "model_refused",
  "policy_failed",
  "learner_failed",
  "suspended",
  "retried",
  "left_out",
  "rejected",
  "stuck",
  "drift",
  "service",
];

const LEVELS: Choice[] = [
  { value: "", label: "All levels" },
  { value: "warning", label: "Warnings and problems" },
  { value: "problem", label: "Problems" },
];

const SEARCH_MS = 300;

export function EventLog() {
  const box = useRef<HTMLDivElement>(null);
  const scope = useParameter("events");
  const kind = useParameter("kind");
  const level = useParameter("level");
  const service = useParameter("service") ?? "";
  const selected = useSelectedRun();
  const run = scope === "run" ? selected : scope;
  const [paused, setPaused] = useState(false);
  const [scrolled, setScrolled] = useState(false);
  const [text, setText] = useState("");
  const search = useDelayed(text.trim(), SEARCH_MS);
  const { source, shown, hidden, older } = useEvents({ run, kind, level, text: search }, paused || scrolled);
  const groups = useMemo(() => groupEvents(shown, service), [shown, service]);
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
  const filtered = Boolean(kind || level || search || shown.length);
  return (
    <Widget
      id="events"
      title="Events"
      caption="Newest first; events that repeat are one line. Red ones are problems."
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
              {groups.map((group) => (
                <Entry key={group.key} group={group} count={group.count} sequence={group.newest.sequence} />
              ))}
            </ol>
            {groups.length === 0 && !source.stale && <NoEvents any={filtered} />}
            {older && <LoadOlder load={older} />}
          </div>
        </div>
      </div>
    </Widget>
  );
}

/** A value that has not changed for a while. */
function useDelayed(value: string, delay: number): string {
  const [delayed, setDelayed] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setDelayed(value), delay);
    return () => clearTimeout(timer);
  }, [value, delay]);
  return delayed;
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
        label="Level"
        value={useParameter("level") ?? ""}
        choices={LEVELS}
        onChoose={(value) => setParameters({ level: value })}
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

/** Drawn again only when its group has grown. */
const Entry = memo(EntryLine, (before, after) => before.sequence === after.sequence && before.count === after.count);

function EntryLine({ group }: { group: EventGroup; count: number; sequence: number }) {
  const event = group.newest;
  const line = (
    <>
      <time
        className="num shrink-0 text-faint"
        dateTime={new Date(event.at * 1000).toISOString()}
        title={dateTime(event.at)}
      >
        {clock(event.at)}
      </time>
      <Badge tone={toneOf(event)}>{event.kind.replaceAll("_", " ")}</Badge>
      <span className="shrink-0 text-xs text-muted">{event.service}</span>
      <span className="min-w-0 flex-1 basis-64 break-words">{event.message}</span>
      {group.count > 1 && (
        <span data-testid="event-count" className="num text-xs text-muted" title={`Since ${dateTime(group.since)}`}>
          × {group.count}
        </span>
      )}
      {event.run && <span className="font-mono text-[0.6875rem] text-faint max-sm:hidden">{event.run}</span>}
    </>
  );
  const shape = "flex flex-wrap items-baseline gap-x-3 gap-y-0.5 px-2 py-1.5 text-[0.8125rem]";
  const more = group.count > 1 || Object.keys(event.data).length > 0;
  return (
    <li
      data-testid="event"
      data-kind={event.kind}
      className="border-b border-line [contain-intrinsic-size:auto_2.1rem] [content-visibility:auto] hover:bg-sunken"
    >
      {more ? (
        <Details line={<summary className={`${shape} cursor-pointer list-none`}>{line}</summary>} group={group} />
      ) : (
        <div className={shape}>{line}</div>
      )}
    </li>
  );
}

function Details({ line, group }: { line: ReactNode; group: EventGroup }) {
  const { newest, members, count } = group;
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      {line}
      {open && (
        <div className="px-2 pb-2">
          {newest.run && (
            <Link view="history" change={{ run: newest.run }} className="text-xs text-accent hover:underline">
              run {newest.run}
            </Link>
          )}
          {count > 1 && (
            <ol className="mt-1 max-h-64 overflow-auto text-xs text-muted">
              {members.map((event) => (
                <li key={event.sequence} className="flex gap-3 py-0.5">
                  <time className="num shrink-0 text-faint" dateTime={new Date(event.at * 1000).toISOString()}>
                    {clock(event.at)}
                  </time>
                  <span className="min-w-0 break-words">{event.message}</span>
                </li>
              ))}
              {count > members.length && <li className="py-0.5">and {count - members.length} before</li>}
            </ol>
          )}
          {Object.keys(newest.data).length > 0 && (
            <pre className="mt-1 max-h-64 overflow-auto rounded-lg bg-sunken p-2 font-mono text-xs break-words whitespace-pre-wrap text-muted">
              {JSON.stringify(newest.data, null, 2)}
            </pre>
          )}
        </div>
      )}
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
      {count} new{count >= PAGE ? " or more" : ""}
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
