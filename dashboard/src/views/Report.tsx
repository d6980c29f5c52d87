import { ArrowLeft, ExternalLink } from "lucide-react";
import { usePolled } from "../api/polling";
import type { Report as ReportRow } from "../api/types";
import { dateTime } from "../format";
import { Empty, Link } from "../ui";
import { useParameter } from "../url";

/** A report of the lab, in a frame that runs no script. */
export default function Report() {
  const name = useParameter("report") ?? "";
  const reports = usePolled<ReportRow[]>("/api/reports", 0);
  const report = reports.data?.find((each) => each.name === name);
  if (reports.data && !report) return <NoReport name={name} />;
  const address = `/api/reports/${encodeURIComponent(name)}`;
  const shape =
    "inline-flex h-8 items-center gap-1.5 rounded-lg border border-line bg-sunken px-2.5 text-xs hover:border-line-strong";
  return (
    <div className="flex h-[calc(100dvh-6.5rem)] min-h-96 flex-col gap-3 max-md:h-[calc(100dvh-12rem)]">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-2">
        <h2 className="min-w-0 text-lg font-semibold tracking-tight">{report?.title ?? name}</h2>
        {report && <span className="text-xs text-muted">written {dateTime(report.written_at)}</span>}
        <span className="ml-auto flex gap-2">
          <Link view="history" className={shape}>
            <ArrowLeft aria-hidden className="size-3.5" /> All reports
          </Link>
          <a className={shape} href={address} target="_blank" rel="noreferrer">
            <ExternalLink aria-hidden className="size-3.5" /> Alone in a tab
          </a>
        </span>
      </div>
      <iframe
        key={name}
        data-testid="report"
        title={report?.title ?? name}
        src={address}
        sandbox=""
        className="min-h-0 w-full flex-1 rounded-xl border border-line bg-white"
      />
    </div>
  );
}

function NoReport({ name }: { name: string }) {
  return (
    <div className="mt-24">
      <Empty>
        <p className="mb-4">There is no report {name}.</p>
        <Link view="history" className="text-accent underline">
          All reports
        </Link>
      </Empty>
    </div>
  );
}
