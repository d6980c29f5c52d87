/** What went wrong or changed, in any run: stored events, so that one finds them again after a reload. */
import { Bell } from "lucide-react";
import { useMemo, useRef, useState } from "react";
import { usePolled } from "../api/polling";
import type { EventPage, StoredEvent } from "../api/types";
import { type EventGroup, groupEvents, toneOf } from "../events";
import { dateTime } from "../format";
import { useRefetchOnNotification } from "../live";
import { Badge } from "../ui/Badge";
import { Button } from "../ui/Button";
import { Link } from "../ui/Link";
import { useClosing } from "../ui/useClosing";
import type { Change } from "../url";

const ADDRESS = "/api/events?level=warning&limit=200";
const POLL_MS = 15_000;
const MOST_SHOWN = 99;
/** Where the browser keeps the time of the newest alert that was looked at. */
const SEEN = "hybrid.alerts.seen";

export function Alerts() {
  const page = usePolled<EventPage>(ADDRESS, POLL_MS);
  useRefetchOnNotification(page.refetch, (note) => note.level !== "info");
  const groups = useMemo(() => groupEvents(page.data?.events ?? []), [page.data]);
  const [seen, setSeen] = useState(() => Number(localStorage.getItem(SEEN) ?? 0));
  /** What was seen before the list was opened: the others are marked in it. */
  const [seenBefore, setSeenBefore] = useState(seen);
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  useClosing(open, box, () => setOpen(false));
  const unseen = groups.filter((group) => group.newest.at > seen).length;
  const toggle = () => {
    setOpen(!open);
    if (open) return;
    const newest = Math.max(seen, groups[0]?.newest.at ?? 0);
    setSeenBefore(seen);
    setSeen(newest);
    localStorage.setItem(SEEN, String(newest));
  };
  return (
    <div ref={box} className="relative">
      <Button
        data-testid="alerts"
        data-value={unseen}
        variant="ghost"
        className="relative"
        aria-expanded={open}
        label={unseen ? `Alerts: ${unseen} new` : "Alerts"}
        icon={<BellIcon unseen={unseen} />}
        onClick={toggle}
      />
      {open && <AlertList groups={groups} seenBefore={seenBefore} close={() => setOpen(false)} />}
    </div>
  );
}

function BellIcon({ unseen }: { unseen: number }) {
  return (
    <>
      <Bell aria-hidden className="size-4.5" />
      {unseen > 0 && (
        <span className="num absolute -top-0.5 -right-0.5 rounded-full bg-bad px-1 text-[0.625rem] leading-4 font-semibold text-ground">
          {unseen > MOST_SHOWN ? `${MOST_SHOWN}+` : unseen}
        </span>
      )}
    </>
  );
}

function AlertList(props: { groups: EventGroup[]; seenBefore: number; close: () => void }) {
  const { groups, seenBefore, close } = props;
  return (
    <section
      data-testid="alert-list"
      aria-label="Alerts"
      className="absolute right-0 z-40 mt-2 flex max-h-[70dvh] w-96 flex-col rounded-xl border border-line-strong bg-raised shadow-lg max-sm:fixed max-sm:inset-x-3 max-sm:w-auto"
    >
      <ol className="min-h-0 flex-1 overflow-auto p-2" tabIndex={0} aria-label="Alerts, newest first">
        {groups.map((group) => (
          <Alert key={group.key} group={group} isNew={group.newest.at > seenBefore} close={close} />
        ))}
        {groups.length === 0 && (
          <li className="px-2 py-6 text-center text-muted">
            No alerts. Failing schedulers, stuck runs, changes of the workload and dead letters appear here.
          </li>
        )}
      </ol>
      <p className="border-t border-line px-4 py-2 text-xs">
        <Link view="log" change={{ level: "warning" }} className="text-accent underline" onClick={close}>
          All of them, in the log
        </Link>
      </p>
    </section>
  );
}

function Alert({ group, isNew, close }: { group: EventGroup; isNew: boolean; close: () => void }) {
  const { newest, count } = group;
  const { view, change } = targetOf(newest);
  return (
    <li data-testid="alert" data-kind={newest.kind} className="border-b border-line last:border-0">
      <Link
        view={view}
        change={change}
        className={`block rounded-lg px-2 py-2 text-[0.8125rem] hover:bg-sunken ${isNew ? "bg-accent/10" : ""}`}
        onClick={close}
      >
        <span className="flex flex-wrap items-center gap-x-2">
          <Badge tone={toneOf(newest)}>{newest.kind.replaceAll("_", " ")}</Badge>
          <time className="num text-xs text-muted" dateTime={new Date(newest.at * 1000).toISOString()}>
            {dateTime(newest.at)}
          </time>
          {count > 1 && <span className="num text-xs text-muted">× {count}</span>}
          {isNew && <span className="sr-only">new</span>}
        </span>
        <span className="mt-0.5 line-clamp-3 break-words">{newest.message}</span>
      </Link>
    </li>
  );
}

/** Where one can do something about it: the scheduler's page, the run, or the log. */
export function targetOf({ run, data, kind }: StoredEvent): { view: string; change: Change } {
  if (run && typeof data.scheduler === "string") {
    return { view: "scheduler", change: { run, scheduler: data.scheduler } };
  }
  if (run && kind === "drift") return { view: "arena", change: { run } };
  return { view: "log", change: { ...(run && { run, events: run }), kind } };
}
