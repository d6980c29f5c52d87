import { usePolled } from "../../api/polling";
import type { Report } from "../../api/types";
import { dateTime } from "../../format";
import { type Column, Link, Table, Widget } from "../../ui";

/** Reports of the lab's experiments; nothing where there are none. */
export function Reports() {
  const reports = usePolled<Report[]>("/api/reports", 30_000);
  if (!reports.data?.length) return null;
  return (
    <Widget
      id="reports"
      title="Reports of the lab"
      caption="Written by hybrid experiment run, newest first. A report opens inside the dashboard."
      source={reports}
      className="max-h-96"
      scroll
    >
      <Table
        caption="Reports of the lab"
        columns={COLUMNS}
        rows={reports.data}
        rowKey={(row) => row.name}
        sort={{ key: "written_at", descending: true }}
      />
    </Widget>
  );
}

const COLUMNS: Column<Report>[] = [
  {
    key: "title",
    header: "Report",
    value: (row) => row.title,
    show: (row) => (
      <Link view="report" change={{ report: row.name }} className="text-accent hover:underline">
        {row.title}
      </Link>
    ),
  },
  {
    key: "written_at",
    header: "Written",
    numeric: true,
    value: (row) => row.written_at,
    show: (row) => dateTime(row.written_at),
  },
  {
    key: "name",
    header: "Folder",
    value: (row) => row.name,
    show: (row) => <span className="font-mono text-xs text-muted">{row.name}</span>,
  },
];
