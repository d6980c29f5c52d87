import { usePolled } from "../../api/polling";
import type { Health, ServiceReport, Status } from "../../api/types";
import { count, dateTime } from "../../format";
import { labelOf } from "../../schedulers";
import { Badge, type Column, Table, Widget } from "../../ui";

const NOT_ON_THE_BUS = "missing: it does not run, or does not reach NATS; its log says which";

export function Services() {
  const health = usePolled<Health>("/api/health", 5_000);
  const data = health.data;
  const rows = [...(data?.services ?? [])].sort((left, right) => titleOf(left).localeCompare(titleOf(right)));
  const refused = data?.refused ?? [];
  const missing = data?.missing.filter((name) => !refused.some(({ client }) => client === name)) ?? [];
  return (
    <Widget
      id="services"
      title="Services"
      caption="The services that answered the last health check."
      source={health}
      actions={data && <Badge tone={data.status === "ok" ? "good" : "bad"}>{data.status}</Badge>}
      scroll
    >
      <ul className="flex flex-wrap gap-2 px-1 pb-3" aria-label="NATS and ClickHouse">
        <PartBadge name="NATS" ok={data?.nats.ok ?? false} problem={data?.nats.problem ?? null} />
        <PartBadge name="ClickHouse" ok={data?.clickhouse.ok ?? false} problem={data?.clickhouse.problem ?? null} />
        {refused.map(({ client, user, address }) => (
          <PartBadge
            key={`${client} ${user} ${address}`}
            name={client}
            ok={false}
            problem={`NATS refuses its user ${user} or its password (from ${address})`}
          />
        ))}
        {missing.map((name) => (
          <PartBadge key={name} name={name} ok={false} problem={NOT_ON_THE_BUS} />
        ))}
      </ul>
      <Table
        caption="Services"
        columns={COLUMNS}
        rows={rows}
        rowKey={(row) => row.instance}
        empty="No service answers."
      />
    </Widget>
  );
}

function PartBadge({ name, ok, problem }: { name: string; ok: boolean; problem: string | null }) {
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

function problemsOf(report: ServiceReport): string {
  return Object.entries(report.problems)
    .map(([part, problem]) => `${part}: ${problem}`)
    .join("; ");
}

function processOf({ host, pid }: ServiceReport): string {
  return `${host}:${pid}`;
}

const COLUMNS: Column<ServiceReport>[] = [
  { key: "service", header: "Service", value: titleOf },
  {
    key: "problems",
    header: "State",
    value: problemsOf,
    show: (row) => {
      const problems = problemsOf(row);
      return (
        <Badge tone={problems ? "bad" : "good"} title={problems}>
          {problems || "ok"}
        </Badge>
      );
    },
  },
  {
    key: "started_at",
    header: "Up since",
    value: (row) => row.started_at,
    show: (row) => dateTime(row.started_at),
  },
  {
    key: "host",
    header: "Process",
    value: processOf,
    show: (row) => <span className="font-mono text-xs text-muted">{processOf(row)}</span>,
  },
];

export function Lag() {
  const status = usePolled<Status>("/api/status", 3_000);
  const rows = Object.entries(status.data?.lag ?? {}).map(([consumer, messages]) => ({ consumer, messages }));
  const highest = Math.max(1, ...rows.map((row) => row.messages));
  return (
    <Widget
      id="lag"
      title="Lag"
      caption="Messages that each consumer has not processed yet. A number that only grows: the consumer is too slow."
      source={status}
      empty={rows.length === 0 && "No consumer yet."}
      scroll
    >
      <Table
        caption="Lag of every consumer"
        columns={[
          { key: "consumer", header: "Consumer", value: (row) => row.consumer },
          {
            key: "messages",
            header: "Messages",
            numeric: true,
            value: (row) => row.messages,
            show: (row) => (
              <span className="inline-flex items-center gap-2">
                <span aria-hidden className="inline-block h-1.5 w-16 overflow-hidden rounded-full bg-sunken">
                  <span
                    className="block h-full rounded-full bg-accent"
                    style={{ width: `${(row.messages / highest) * 100}%` }}
                  />
                </span>
                {count(row.messages)}
              </span>
            ),
          },
        ]}
        rows={rows}
        rowKey={(row) => row.consumer}
        rowAttributes={(row) => ({ "data-consumer": row.consumer })}
        sort={{ key: "messages", descending: true }}
      />
    </Widget>
  );
}
