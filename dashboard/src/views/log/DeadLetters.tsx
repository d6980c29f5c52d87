import type { ReactNode } from "react";
import { path } from "../../api/client";
import type { Letter, LetterPage } from "../../api/types";
import { usePolled } from "../../api/usePolled";
import { clock, count, dateTime } from "../../format";
import { Badge, type Column, Stat, Table, Widget } from "../../ui";

const SHOWN = 20;

/** What could not be understood, newest first, and what to do about it. */
export function DeadLetters() {
  const page = usePolled<LetterPage>(path("/api/rejected", { limit: SHOWN }), 5_000);
  const total = page.data?.total ?? 0;
  const services = Object.entries(page.data?.services ?? {}).slice(0, 6);
  return (
    <Widget
      id="dead-letters"
      title="Dead letters"
      hint="Messages that nobody could understand, kept with the reason. 0 is what it should be: a decision among them holds up its scheduler until it is replayed."
      source={page}
      actions={services.map(([service, letters]) => (
        <Badge key={service} tone="bad">
          {service} {count(letters)}
        </Badge>
      ))}
      scroll
    >
      <dl className="px-1">
        <Stat label="Kept aside" value={count(total)} raw={total} note={total === 0 ? "nothing was rejected" : undefined} />
      </dl>
      {total > 0 && (
        <>
          <div
            className="max-h-56 overflow-auto pt-2"
            tabIndex={0}
            role="region"
            aria-label={`The newest dead letters, ${SHOWN} at most`}
          >
            <Table
              caption="Dead letters"
              columns={COLUMNS}
              rows={page.data?.letters ?? []}
              rowKey={(row) => String(row.sequence)}
              rowAttributes={(row) => ({ "data-letter": String(row.sequence) })}
              sortable={false}
            />
          </div>
          <p className="px-1 pt-3 text-xs text-muted">
            Look into one with <Command>hybrid rejected show {page.data?.letters[0]?.sequence ?? 1}</Command>, send it
            again with <Command>hybrid rejected replay</Command>, remove it with{" "}
            <Command>hybrid rejected purge</Command>.
          </p>
        </>
      )}
    </Widget>
  );
}

function Command({ children }: { children: ReactNode }) {
  return <code className="rounded bg-sunken px-1 font-mono">{children}</code>;
}

const COLUMNS: Column<Letter>[] = [
  { key: "sequence", header: "No.", numeric: true, value: (row) => row.sequence },
  {
    key: "at",
    header: "When",
    value: (row) => row.at,
    show: (row) => <time title={dateTime(row.at)}>{clock(row.at)}</time>,
  },
  { key: "service", header: "Put aside by", value: (row) => row.service },
  {
    key: "subject",
    header: "Came on",
    value: (row) => row.subject,
    show: (row) => <span className="font-mono text-xs">{row.subject || "–"}</span>,
  },
  {
    key: "reason",
    header: "Reason",
    value: (row) => row.reason,
    show: (row) => <span className="break-words">{row.reason || "–"}</span>,
  },
];
