import type { ReactNode } from "react";
import { path } from "../../api/client";
import { usePolled } from "../../api/polling";
import type { DeadLetter, DeadLetterPage } from "../../api/types";
import { clock, count, dateTime } from "../../format";
import { Badge, type Column, numberColumn, Stat, Table, Widget } from "../../ui";

const LIMIT = 20;

/** Rejected messages, and the commands that replay or delete them. */
export function DeadLetters() {
  const page = usePolled<DeadLetterPage>(path("/api/rejected", { limit: LIMIT }), 5_000);
  const total = page.data?.total ?? 0;
  const services = Object.entries(page.data?.services ?? {}).slice(0, 6);
  return (
    <Widget
      id="dead-letters"
      title="Dead letters"
      caption="Messages that could not be processed, with the reason. A scheduler waits for its rejected decisions until they are replayed."
      source={page}
      actions={services.map(([service, letters]) => (
        <Badge key={service} tone="bad">
          {service} {count(letters)}
        </Badge>
      ))}
      scroll
    >
      <dl className="px-1">
        <Stat
          label="Rejected messages"
          value={count(total)}
          raw={total}
          note={total === 0 ? "no message was rejected" : undefined}
        />
      </dl>
      {total > 0 && (
        <>
          <div
            className="max-h-56 overflow-auto pt-2"
            tabIndex={0}
            role="region"
            aria-label={`The newest dead letters, ${LIMIT} at most`}
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
            Show one with <Command>hybrid rejected show {page.data?.letters[0]?.sequence ?? 1}</Command>, publish it
            again with <Command>hybrid rejected replay</Command>, delete it with{" "}
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

const COLUMNS: Column<DeadLetter>[] = [
  numberColumn("sequence", "No."),
  {
    key: "at",
    header: "Time",
    value: (row) => row.at,
    show: (row) => <time title={dateTime(row.at)}>{clock(row.at)}</time>,
  },
  { key: "service", header: "Rejected by", value: (row) => row.service },
  {
    key: "subject",
    header: "Subject",
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
