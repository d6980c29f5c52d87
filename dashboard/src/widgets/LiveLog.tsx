import { clock } from "../format";
import { type Notification, useLive } from "../live";
import { Link, Widget } from "../ui";

const TONE: Record<string, string> = {
  model: "text-accent2",
  run: "text-accent",
  rejected: "text-bad",
  policy_failed: "text-bad",
  model_refused: "text-bad",
};

export function LiveLog() {
  const notes = useLive((live) => live.notifications);
  return (
    <Widget
      id="log"
      title="Live log"
      hint="What happened, newest first: models shipped, runs moved, messages rejected. Good is no red."
      empty={notes.length === 0 && "Nothing has happened yet."}
      actions={
        <Link view="log" className="px-2 text-xs text-accent hover:underline">
          All events
        </Link>
      }
      scroll
    >
      <ol className="text-[0.8125rem]">
        {notes.slice(0, 40).map((note) => (
          <Note key={`${note.at}|${note.kind}|${note.service}|${note.run}|${note.message}`} note={note} />
        ))}
      </ol>
    </Widget>
  );
}

function Note({ note }: { note: Notification }) {
  return (
    <li className="flex gap-3 border-b border-line py-1.5 last:border-0">
      <time className="num shrink-0 font-mono text-xs leading-5 text-faint" dateTime={new Date(note.at * 1000).toISOString()}>
        {clock(note.at)}
      </time>
      <span className={`w-16 shrink-0 truncate text-xs leading-5 ${TONE[note.kind] ?? "text-muted"}`} title={`${note.kind}, from ${note.service}`}>
        {note.kind}
      </span>
      <span className="min-w-0 break-words">{note.message}</span>
    </li>
  );
}
