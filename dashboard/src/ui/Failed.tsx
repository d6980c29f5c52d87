import { count, percent, ratio } from "../format";
import { Badge } from "./Badge";
import type { Column } from "./Table";

/** How many tasks failed; nothing when none did. */
export function FailedBadge({ failed, tasks }: { failed: number; tasks: number }) {
  if (!failed) return null;
  const share = percent(ratio(failed, tasks));
  return (
    <Badge
      tone="bad"
      title={`${share} of the tasks failed. Each is charged as if it had run on the slowest device type.`}
    >
      {count(failed)} failed
    </Badge>
  );
}

interface Failures {
  failed: number;
  tasks: number;
}

export function failedColumn<Row extends Failures>(): Column<Row> {
  return {
    key: "failed",
    header: "Failed",
    numeric: true,
    value: (row) => row.failed,
    show: (row) => (row.failed ? <FailedBadge failed={row.failed} tasks={row.tasks} /> : "0"),
    hint: "A failed task is charged as if it had run on the slowest device type",
  };
}
