import { ChevronLeft, ChevronsRight } from "lucide-react";
import { useRunPolled } from "../api/runs";
import type { TaskPage, TaskRow } from "../api/types";
import { devicesLabel } from "../devices";
import { dollars, joules, megabytes, modelVersion, number, overOracle, percent, seconds } from "../format";
import { useSchedulers } from "../live";
import { labelOf } from "../schedulers";
import { Badge, Button, type Column, numberColumn, Select, schedulerColumn, Table, taskColumn, Widget } from "../ui";
import { setParameters, useParameter } from "../url";
import type { ArenaWidget } from "./layout";

// Tasks per page; a task has one row per scheduler.
const PAGE_ALL_SCHEDULERS = 10;
const PAGE_ONE_SCHEDULER = 40;

export const recentDecisions: ArenaWidget = {
  id: "decisions",
  title: "Recent decisions",
  caption: "The newest decisions and their cost. +0 % in “vs Oracle” is the best. Click a task number for its details.",
  component: RecentDecisions,
  sizes: { wall: [8, 13], wide: [8, 13], medium: [6, 12] },
};

const SCHEDULER = schedulerColumn<TaskRow>((row) => row.scheduler_name);

const COLUMNS: Column<TaskRow>[] = [
  taskColumn(),
  SCHEDULER,
  {
    key: "gpu_fraction",
    header: "Accelerated",
    numeric: true,
    value: (row) => row.gpu_fraction,
    show: (row) => <GpuShare row={row} />,
    hint: "Share sent to an accelerator",
  },
  { key: "device", header: "Devices", value: devicesLabel },
  numberColumn("actual_time", "Time", seconds),
  numberColumn("vs_oracle", "vs Oracle", overOracle),
  numberColumn("wait", "Wait", seconds),
  numberColumn("turnaround", "Turnaround", seconds, "From arrival to the end"),
  numberColumn("energy_consumption", "Energy", joules),
  numberColumn("execution_cost", "Cost", dollars),
  numberColumn("size", "Size", number),
  numberColumn("compute_intensity", "Intensity", number),
  numberColumn("memory_required", "Memory", megabytes),
  numberColumn("model_version", "Model", modelVersion),
  { key: "status", header: "Status", value: (row) => row.status, show: (row) => <Status row={row} /> },
];

function GpuShare({ row }: { row: TaskRow }) {
  return (
    <span title={`${percent(row.gpu_fraction)} sent to an accelerator`}>
      <span className="mr-2 inline-block h-1.5 w-10 overflow-hidden rounded-full bg-cpu/60 align-middle">
        <span className="block h-full bg-gpu" style={{ width: `${row.gpu_fraction * 100}%` }} />
      </span>
      {percent(row.gpu_fraction, 0)}
    </span>
  );
}

function Status({ row }: { row: TaskRow }) {
  if (row.status !== "ok") return <Badge tone="bad">{row.status}</Badge>;
  if (row.explored)
    return (
      <Badge tone="accent2" title={`Chosen with probability ${number(row.probability)}`}>
        explored
      </Badge>
    );
  return <Badge tone="neutral">ok</Badge>;
}

/** `only` shows one scheduler, without a filter. */
export function RecentDecisions({ only }: { only?: string }) {
  const names = useSchedulers();
  const filter = useParameter("by");
  const by = only ?? (filter && names.includes(filter) ? filter : null);
  const status = useParameter("status");
  const before = useParameter("before");
  const limit = by ? PAGE_ONE_SCHEDULER : PAGE_ALL_SCHEDULERS;
  const source = useRunPolled<TaskPage>("/tasks", { limit, scheduler: by, status, before }, 3_000);
  const rows = source.data?.rows ?? [];
  const next = source.data?.next_before ?? null;
  return (
    <Widget
      {...recentDecisions}
      source={source}
      scroll
      actions={
        <>
          {!only && (
            <Select
              label="Scheduler"
              value={by ?? ""}
              choices={[
                { value: "", label: "All schedulers" },
                ...names.map((name) => ({ value: name, label: labelOf(name) })),
              ]}
              onChoose={(value) => setParameters({ by: value, before: null })}
            />
          )}
          <Select
            label="Status"
            value={status ?? ""}
            choices={[
              { value: "", label: "Any status" },
              { value: "ok", label: "ok" },
              { value: "failed", label: "failed" },
            ]}
            onChoose={(value) => setParameters({ status: value, before: null })}
          />
          <Button
            variant="ghost"
            className="size-8!"
            label="Older tasks"
            disabled={next === null}
            icon={<ChevronLeft aria-hidden className="size-4" />}
            onClick={() => setParameters({ before: next })}
          />
          <Button
            variant="ghost"
            className="size-8!"
            label="Newest tasks"
            disabled={!before}
            icon={<ChevronsRight aria-hidden className="size-4" />}
            onClick={() => setParameters({ before: null })}
          />
        </>
      }
    >
      <Table
        caption="Recent decisions"
        columns={only ? COLUMNS.filter((column) => column !== SCHEDULER) : COLUMNS}
        rows={rows}
        rowKey={(_, position) => String(position)}
        rowAttributes={(row) => ({ "data-task": String(row.task_id), "data-scheduler": row.scheduler_name })}
        empty={status || by ? "No task matches these filters." : "No results are stored yet."}
      />
    </Widget>
  );
}
