import type { Health, ServiceReport, Status } from "../../api/types";
import { usePolled } from "../../api/usePolled";
import { count, dateTime } from "../../format";
import { labelOf } from "../../schedulers";
import { Badge, type Column, Table, Widget } from "../../ui";

const EVERY = 5_000;

/** Whether each part answers. */
export function Services() {
  const health = usePolled<Health>("/api/health", EVERY);
  const data = health.data;
  const rows = [...(data?.services ?? [])].sort((left, right) => titleOf(left).localeCompare(titleOf(right)));
  return (
    <Widget
      id="services"
      title="Services"
      hint="Who answered the last roll call. All is well when nothing is missing and no row has a problem."
      source={health}
      actions={data && <Badge tone={data.status === "ok" ? "good" : "bad"}>{data.status}</Badge>}
      scroll
    >
      <ul className="flex flex-wrap gap-2 px-1 pb-3" aria-label="Foundations">
        <Part name="NATS" ok={data?.nats.ok ?? false} problem={data?.nats.problem ?? null} />
        <Part name="ClickHouse" ok={data?.clickhouse.ok ?? false} problem={data?.clickhouse.problem ?? null} />
        {data?.missing.map((name) => <Part key={name} name={name} ok={false} problem="missing" />)}
      </ul>
      <Table caption="Services" columns={COLUMNS} rows={rows} rowKey={(row) => String(row["instance"])} empty="Nobody answers." />
    </Widget>
  );
}

function Part({ name, ok, problem }: { name: string; ok: boolean; problem: string | null }) {
  return (
    <li>
      <Badge tone={ok ? "good" : "bad"}>
        {name}: {ok ? "ok" : (problem ?? "does not answer")}
      </Badge>
    </li>
  );
}

function titleOf(report: ServiceReport): string {
  return report.scheduler ? `${report.service} · ${labelOf(report.scheduler)}` : report.service;
}

function problemsOf(report: ServiceReport): string[] {
  const problems = report["problems"];
  if (typeof problems !== "object" || problems === null) return [];
  return Object.entries(problems).map(([part, problem]) => `${part}: ${String(problem)}`);
}

function startedAt(report: ServiceReport): number {
  return Number(report["started_at"]);
}

const COLUMNS: Column<ServiceReport>[] = [
  { key: "service", header: "Service", value: titleOf },
  {
    key: "problems",
    header: "State",
    value: (row) => problemsOf(row).join("; "),
    show: (row) => {
      const problems = problemsOf(row);
      return problems.length ? (
        <Badge tone="bad" title={problems.join("; ")}>
          {problems.join("; ")}
        </Badge>
      ) : (
        <Badge tone="good">ok</Badge>
      );
    },
  },
  {
    key: "started_at",
    header: "Up since",
    value: startedAt,
    show: (row) => dateTime(startedAt(row)),
  },
  {
    key: "host",
    header: "Process",
    value: (row) => `${String(row["host"])}:${String(row["pid"])}`,
    show: (row) => (
      <span className="font-mono text-xs text-muted">
        {String(row["host"])}:{String(row["pid"])}
      </span>
    ),
  },
];

/** Who is behind, and by how much. */
export function Lag() {
  const status = usePolled<Status>("/api/status", 3_000);
  const rows = Object.entries(status.data?.lag ?? {}).map(([reader, messages]) => ({ reader, messages }));
  const most = Math.max(1, ...rows.map((row) => row.messages));
  return (
    <Widget
      id="lag"
      title="Lag"
      hint="Messages that each reader of the bus has still to deal with. Close to 0 is good; one that only grows cannot keep up."
      source={status}
      empty={rows.length === 0 && "No reader is there yet."}
      scroll
    >
      <Table
        caption="Lag of every reader"
        columns={[
          { key: "reader", header: "Reader", value: (row) => row.reader },
          {
            key: "messages",
            header: "Messages",
            numeric: true,
            value: (row) => row.messages,
            show: (row) => (
              <span className="inline-flex items-center gap-2">
                <span aria-hidden className="inline-block h-1.5 w-16 overflow-hidden rounded-full bg-sunken">
                  <span className="block h-full rounded-full bg-accent" style={{ width: `${(row.messages / most) * 100}%` }} />
                </span>
                {count(row.messages)}
              </span>
            ),
          },
        ]}
        rows={rows}
        rowKey={(row) => row.reader}
        rowAttributes={(row) => ({ "data-reader": row.reader })}
        sort={{ key: "messages", descending: true }}
      />
    </Widget>
  );
}
