import { colourOf, labelOf } from "../schedulers";
import { useTheme } from "../theme";
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

export function schedulerColumn<Row>(nameOf: (row: Row) => string, plain = false): Column<Row> {
  return {
    key: "scheduler",
    header: "Scheduler",
    value: (row) => labelOf(nameOf(row)),
    show: (row) => <SchedulerName name={nameOf(row)} plain={plain} />,
  };
}
