import { clock } from "../format";
import { type Notification, useLive } from "../live";
import { Link, Widget } from "../ui";
import type { ArenaWidget } from "./layout";

export const liveLog: ArenaWidget = {
  id: "log",
  title: "Live log",
  caption: "The newest events: runs, models, rejected messages. Red is a problem.",
  component: LiveLog,
  sizes: { wall: [4, 7], wide: [4, 7], medium: [3, 7] },
};

const TONE: Record<string, string> = { model: "text-accent2", run: "text-accent" };
const LEVEL_TONE: Record<string, string> = { problem: "text-bad", warning: "text-warn" };

export function LiveLog() {
  const notifications = useLive((live) => live.notifications);
  return (
    <Widget
      {...liveLog}
      empty={notifications.length === 0 && "No events yet."}
      actions={
        <Link view="log" className="px-2 text-xs text-accent hover:underline">
          All events
        </Link>
      }
      scroll
    >
      <ol className="text-[0.8125rem]">
        {notifications.slice(0, 40).map((each) => (
          <Line key={each.group} event={each} />
        ))}
      </ol>
    </Widget>
  );
}

function Line({ event }: { event: Notification }) {
  return (
    <li className="flex gap-3 border-b border-line py-1.5 last:border-0">
      <time
        className="num shrink-0 font-mono text-xs leading-5 text-faint"
        dateTime={new Date(event.at * 1000).toISOString()}
      >
        {clock(event.at)}
      </time>
      <span
        className={`w-16 shrink-0 truncate text-xs leading-5 ${LEVEL_TONE[event.level] ?? TONE[event.kind] ?? "text-muted"}`}
        title={`${event.kind}, from ${event.service}`}
      >
        {event.kind}
      </span>
      <span className="min-w-0 flex-1 break-words">{event.message}</span>
      {event.count > 1 && <span className="num shrink-0 text-xs leading-5 text-muted">× {event.count}</span>}
    </li>
  );
}
