import { ChevronLeft, ChevronsRight } from "lucide-react";
import { runPath } from "../api/client";
import { useRunPolled } from "../api/runs";
import type { TaskPage, TaskRow } from "../api/types";
import { devicesLabel, placementText } from "../devices";
import { dollars, joules, megabytes, modelVersion, number, overOracle, percent, seconds } from "../format";
import { useRun, useSchedulers } from "../live";
import { labelOf } from "../schedulers";
import {
  Badge,
  Button,
  type Column,
  numberColumn,
  Select,
  type Sorting,
  schedulerColumn,
  Table,
  taskColumn,
  Widget,
} from "../ui";
import { setParameters, useParameter } from "../url";
import type { ArenaWidget } from "./layout";

// Tasks per page; a task has one row per scheduler.
const PAGE_ALL_SCHEDULERS = 10;
const PAGE_ONE_SCHEDULER = 40;
const SORTED_ROWS = 100;

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
    <span title={placementText(row)}>
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

/** By the key of a column: the name that the gateway sorts by. */
const SORT_KEYS: Record<string, string> = {
  ...Object.fromEntries(COLUMNS.map(({ key }) => [key, key])),
  actual_time: "time",
  energy_consumption: "energy",
  execution_cost: "cost",
};

const FIRST_PAGE = { before: null, offset: null };

/** "time" or "-time" in the address, as `sort`. */
function useSorting(): Sorting | null {
  const text = useParameter("sort") ?? "";
  const key = text.replace(/^-/, "");
  return key in SORT_KEYS ? { key, descending: text.startsWith("-") } : null;
}

function sortBy({ key, descending }: Sorting): void {
  setParameters({ sort: `${descending ? "-" : ""}${key}`, ...FIRST_PAGE });
}

/** `only` shows one scheduler, without a filter. */
export function RecentDecisions({ only }: { only?: string }) {
  const names = useSchedulers();
  const filter = useParameter("by");
  const by = only ?? (filter && names.includes(filter) ? filter : null);
  const status = useParameter("status");
  const before = useParameter("before");
  const limit = by ? PAGE_ONE_SCHEDULER : PAGE_ALL_SCHEDULERS;
  const run = useRun();
  const sorting = useSorting();
  const offset = useParameter("offset");
  const query = sorting
    ? { limit: SORTED_ROWS, sort: SORT_KEYS[sorting.key], descending: String(sorting.descending), offset }
    : { limit, before };
  // Sorting reads the whole run: once, not at every update.
  const source = useRunPolled<TaskPage>("/tasks", { ...query, scheduler: by, status }, sorting ? 0 : 3_000);
  const rows = source.data?.rows ?? [];
  const next = (sorting ? source.data?.next_offset : source.data?.next_before) ?? null;
  const first = sorting ? offset : before;
  return (
    <Widget
      {...recentDecisions}
      source={source}
      scroll
      files={
        run ? [{ label: "CSV of the whole run", href: runPath(run, "/ledger.csv", { scheduler: by }) }] : undefined
      }
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
              onChoose={(value) => setParameters({ by: value, ...FIRST_PAGE })}
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
            onChoose={(value) => setParameters({ status: value, ...FIRST_PAGE })}
          />
          <Button
            variant="ghost"
            className="size-8!"
            label={sorting ? "Next page" : "Older tasks"}
            disabled={next === null}
            icon={<ChevronLeft aria-hidden className="size-4" />}
            onClick={() => setParameters(sorting ? { offset: next } : { before: next })}
          />
          <Button
            variant="ghost"
            className="size-8!"
            label={sorting && !offset ? "Newest tasks, unsorted" : sorting ? "First page" : "Newest tasks"}
            disabled={!first && !sorting}
            icon={<ChevronsRight aria-hidden className="size-4" />}
            onClick={() => setParameters(first ? FIRST_PAGE : { ...FIRST_PAGE, sort: null })}
          />
        </>
      }
    >
      <Table
        caption="Recent decisions"
        columns={only ? COLUMNS.filter((column) => column !== SCHEDULER) : COLUMNS}
        rows={rows}
        rowKey={(_, position) => String(position)}
        {...(sorting && { sort: sorting })}
        onSort={sortBy}
        rowAttributes={(row) => ({ "data-task": String(row.task_id), "data-scheduler": row.scheduler_name })}
        empty={status || (by && !only) ? "No task matches these filters." : "No results are stored yet."}
      />
    </Widget>
  );
}
