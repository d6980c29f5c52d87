import type { ReactNode } from "react";
import { colourOf, isReference, labelOf } from "../schedulers";
import { useTheme } from "../theme";
import { Badge } from "./Badge";
import { FailedBadge } from "./Failed";
import { Link } from "./Link";
import type { Column } from "./Table";

/** The colour and label of a scheduler; a link to its page unless `plain`. */
export function SchedulerName({ name, plain = false }: { name: string; plain?: boolean }) {
  const colour = colourOf(name, useTheme());
  const content = (
    <>
      <span aria-hidden className="size-2 shrink-0 rounded-full" style={{ background: colour }} />
      <span className="truncate">{labelOf(name)}</span>
    </>
  );
  const shape = "inline-flex min-w-0 max-w-full items-center gap-2";
  if (plain) return <span className={shape}>{content}</span>;
  return (
    <Link view="scheduler" change={{ scheduler: name }} className={`${shape} hover:underline`}>
      {content}
    </Link>
  );
}

/** Nothing for a competitor. */
export function ReferenceBadge({ name }: { name: string }) {
  if (!isReference(name)) return null;
  return (
    <Badge title="Knows what no scheduler can know: listed by its score, but it does not compete">reference</Badge>
  );
}

interface Standing {
  name: string;
  failed: number;
  tasks: number;
}

/** A scheduler where schedulers are ranked: its name, whether it competes, and what failed. */
export function RankedName({ row, children }: { row: Standing; children?: ReactNode }) {
  return (
    <span className="flex min-w-0 flex-wrap items-center gap-x-1.5 gap-y-0.5">
      <SchedulerName name={row.name} />
      <ReferenceBadge name={row.name} />
      <FailedBadge failed={row.failed} tasks={row.tasks} />
      {children}
    </span>
  );
}

export function schedulerColumn<Row>(nameOf: (row: Row) => string, plain = false): Column<Row> {
  return {
    key: "scheduler",
    header: "Scheduler",
    value: (row) => labelOf(nameOf(row)),
    show: (row) => (
      <span className="inline-flex items-center gap-1.5">
        <SchedulerName name={nameOf(row)} plain={plain} />
        <ReferenceBadge name={nameOf(row)} />
      </span>
    ),
  };
}
