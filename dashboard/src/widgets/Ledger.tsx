import { ChevronLeft, ChevronsRight } from "lucide-react";
import { useRunPolled } from "../api/runs";
import type { TaskPage, TaskRow } from "../api/types";
import { count, dollars, joules, megabytes, number, overOracle, percent, seconds } from "../format";
import { useSchedulers } from "../live";
import { labelOf } from "../schedulers";
import { Badge, Button, type Column, Link, SchedulerName, Select, Table, Widget } from "../ui";
import { setParameters, useParameter } from "../url";

// Tasks on a page: of all schedulers each is as many rows as there are schedulers.
const PAGE_OF_ALL = 10;
const PAGE_OF_ONE = 40;

const SCHEDULER: Column<TaskRow> = {
  key: "scheduler_name",
  header: "Scheduler",
  value: (row) => labelOf(row.scheduler_name),
  show: (row) => <SchedulerName name={row.scheduler_name} />,
};

const COLUMNS: Column<TaskRow>[] = [
  {
    key: "task_id",
    header: "Task",
    numeric: true,
    value: (row) => row.task_id,
    show: (row) => (
      <Link view="task" change={{ task: row.task_id }} className="text-accent hover:underline">
        {count(row.task_id)}
      </Link>
    ),
  },
  SCHEDULER,
  { key: "gpu_fraction", header: "On GPU", numeric: true, value: (row) => row.gpu_fraction, show: (row) => <Placed row={row} /> },
  { key: "actual_time", header: "Time", numeric: true, value: (row) => row.actual_time, show: (row) => seconds(row.actual_time) },
  { key: "vs_oracle", header: "vs Oracle", numeric: true, value: (row) => row.vs_oracle, show: (row) => overOracle(row.vs_oracle) },
  { key: "wait", header: "Wait", numeric: true, value: (row) => row.wait, show: (row) => seconds(row.wait) },
  { key: "energy_consumption", header: "Energy", numeric: true, value: (row) => row.energy_consumption, show: (row) => joules(row.energy_consumption) },
  { key: "execution_cost", header: "Cost", numeric: true, value: (row) => row.execution_cost, show: (row) => dollars(row.execution_cost) },
  { key: "size", header: "Size", numeric: true, value: (row) => row.size, show: (row) => number(row.size) },
  { key: "compute_intensity", header: "Intensity", numeric: true, value: (row) => row.compute_intensity, show: (row) => number(row.compute_intensity) },
  { key: "memory_required", header: "Memory", numeric: true, value: (row) => row.memory_required, show: (row) => megabytes(row.memory_required) },
  { key: "model_version", header: "Model", numeric: true, value: (row) => row.model_version, show: (row) => (row.model_version ? `v${row.model_version}` : "–") },
  { key: "status", header: "Status", value: (row) => row.status, show: (row) => <Outcome row={row} /> },
];

function Placed({ row }: { row: TaskRow }) {
  const where = row.gpu_fraction > 0 && row.gpu >= 0 ? `GPU ${row.gpu}` : "CPU";
  return (
    <span title={`${percent(row.gpu_fraction)} on ${where}`}>
      <span className="mr-2 inline-block h-1.5 w-10 overflow-hidden rounded-full bg-cpu/60 align-middle">
        <span className="block h-full bg-gpu" style={{ width: `${row.gpu_fraction * 100}%` }} />
      </span>
      {percent(row.gpu_fraction, 0)}
    </span>
  );
}

function Outcome({ row }: { row: TaskRow }) {
  if (row.status !== "ok") return <Badge tone="bad">{row.status}</Badge>;
  if (row.explored) return <Badge tone="accent2" title={`Chosen with probability ${number(row.probability)}`}>explored</Badge>;
  return <Badge tone="neutral">ok</Badge>;
}

/** `only` pins it to one scheduler; the filter then has nothing to choose. */
export function Ledger({ only, title = "Ledger" }: { only?: string; title?: string }) {
  const names = useSchedulers();
  const asked = useParameter("by");
  const by = only ?? (asked && names.includes(asked) ? asked : null);
  const status = useParameter("status");
  const before = useParameter("before");
  const source = useRunPolled<TaskPage>("/tasks", { limit: by ? PAGE_OF_ONE : PAGE_OF_ALL, scheduler: by, status, before }, 3_000);
  const rows = source.data?.rows ?? [];
  const next = source.data?.next_before ?? null;
  return (
    <Widget
      id="ledger"
      title={title}
      hint="The newest decisions and what they cost; a task's number opens its page. Good is +0 % in the Oracle's column."
      source={source}
      scroll
      actions={
        <>
          {!only && (
            <Select
              label="Of scheduler"
              value={by ?? ""}
              choices={[{ value: "", label: "All schedulers" }, ...names.map((name) => ({ value: name, label: labelOf(name) }))]}
              onChoose={(value) => setParameters({ by: value, before: null })}
            />
          )}
          <Select
            label="With status"
            value={status ?? ""}
            choices={[
              { value: "", label: "Any status" },
              { value: "ok", label: "ok" },
              { value: "failed", label: "failed" },
            ]}
            onChoose={(value) => setParameters({ status: value, before: null })}
          />
          <Button look="ghost" className="size-8!" label="Older tasks" disabled={next === null} icon={<ChevronLeft aria-hidden className="size-4" />} onClick={() => setParameters({ before: next })} />
          <Button look="ghost" className="size-8!" label="Newest tasks" disabled={!before} icon={<ChevronsRight aria-hidden className="size-4" />} onClick={() => setParameters({ before: null })} />
        </>
      }
    >
      <Table
        caption="Recent decisions"
        columns={only ? COLUMNS.filter((column) => column !== SCHEDULER) : COLUMNS}
        rows={rows}
        rowKey={(_, place) => String(place)}
        rowAttributes={(row) => ({ "data-task": String(row.task_id), "data-scheduler": row.scheduler_name })}
        empty={status || by ? "No task fits these filters." : "No task has been stored yet."}
      />
    </Widget>
  );
}
