import type { Polled } from "../../api/polling";
import type { TaskDetail } from "../../api/types";
import { deviceLabel, nodeNames, typeLabel } from "../../devices";
import { count, megabytes, number, percent, seconds } from "../../format";
import { useLive } from "../../live";
import { Badge, type Column, Link, numberColumn, Stat, Table, Widget } from "../../ui";
import { useTypeColours } from "../../widgets/typeColours";

type TypeTime = TaskDetail["physics"]["types"][number];

export function Features({ source }: { source: Polled<TaskDetail> }) {
  const task = source.data?.task;
  return (
    <Widget
      id="task-features"
      title="Task"
      caption="What every scheduler knows. Much memory makes transfers slow; high intensity makes accelerators fast."
      source={source}
      scroll
    >
      {task && (
        <>
          <dl className="grid grid-cols-2 gap-x-6 gap-y-3 px-1 sm:grid-cols-4">
            <Stat label="Size" value={number(task.size)} raw={task.size} />
            <Stat label="Intensity" value={number(task.compute_intensity)} raw={task.compute_intensity} note="0 … 1" />
            <Stat label="Memory" value={megabytes(task.memory_required)} raw={task.memory_required} />
            <Stat label="Arrival" value={seconds(task.arrival_time)} raw={task.arrival_time} note="simulated time" />
          </dl>
          <Properties task={task} />
          <p className="flex flex-wrap gap-x-2 px-1 pt-3 text-xs text-muted">
            {task.dependencies.length ? "Waits for" : "Waits for no other task."}
            {task.dependencies.map((parent) => (
              <Link key={parent} view="task" change={{ task: parent }} className="num text-accent underline">
                #{count(parent)}
              </Link>
            ))}
          </p>
        </>
      )}
    </Widget>
  );
}

function Properties({ task }: { task: TaskDetail["task"] }) {
  const cluster = useLive((live) => live.spec?.cluster);
  const home = cluster && task.home >= 0 ? (nodeNames(cluster)[task.home] ?? `node ${task.home}`) : "every node";
  const properties = [
    ["Kind", task.kind || "none"],
    ["Devices at once", count(task.width)],
    ["Data on", home],
    ["Divisible", task.divisible ? "yes" : "no"],
  ] as const;
  return (
    <dl className="flex flex-wrap gap-x-6 gap-y-1 px-1 pt-3 text-xs" data-testid="task-properties">
      {properties.map(([name, value]) => (
        <div key={name} className="flex gap-1.5">
          <dt className="text-muted">{name}</dt>
          <dd className="num font-medium">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

const COLUMNS: Column<TypeTime>[] = [
  { key: "type", header: "Device type", value: (row) => typeLabel(row.type) },
  numberColumn("devices", "Devices"),
  numberColumn("expected_seconds", "Expected", seconds, "With the transfer, as if it fitted the memory"),
  numberColumn("real_seconds", "Real", seconds, "With the noise, which no scheduler knows"),
  numberColumn("transfer_seconds", "Transfer", seconds, "To the device; part of the time"),
  numberColumn("speedup", "Speed-up", times, "Without the transfer, over the fastest CPU type"),
  { key: "notes", header: "Notes", value: (row) => notesOf(row).length, show: (row) => <Notes row={row} /> },
];

function times(value: number | null): string {
  return value === null ? "–" : `${number(value)}×`;
}

/** What a time on this type needs beside it to be understood. */
export function notesOf(row: Pick<TypeTime, "expected_seconds" | "fits_memory" | "measured">): string[] {
  if (row.expected_seconds === null) return ["cannot run it"];
  const notes = row.fits_memory ? [] : ["does not fit its memory"];
  return row.measured === false ? [...notes, "outside of the measured sizes"] : notes;
}

function Notes({ row }: { row: TypeTime }) {
  return (
    <span className="inline-flex flex-wrap gap-1">
      {notesOf(row).map((note) => (
        <Badge key={note} tone={row.expected_seconds === null ? "bad" : "warn"}>
          {note}
        </Badge>
      ))}
    </span>
  );
}

export function Physics({ source }: { source: Polled<TaskDetail> }) {
  const physics = source.data?.physics;
  const noisy = physics?.types.some((row) => row.real_seconds !== row.expected_seconds) ?? false;
  return (
    <Widget
      id="task-physics"
      title="Time on every device type"
      caption={`The time of the whole task on each type, transfer included${noisy ? ": expected, and real in the thin bar" : ""}. The best choice is that of the Oracle.`}
      source={source}
      table={
        <Table
          caption="Time of the task on every device type"
          columns={COLUMNS}
          rows={physics?.types ?? []}
          rowKey={(row) => row.type}
          rowAttributes={(row) => ({ "data-type": row.type })}
        />
      }
      scroll
    >
      {physics && (
        <>
          <Bars types={physics.types} noisy={noisy} />
          <dl className="grid grid-cols-2 gap-x-6 gap-y-3 px-1 pt-4 sm:grid-cols-4">
            <Stat
              label="Best time"
              value={seconds(physics.best_seconds)}
              raw={physics.best_seconds}
              note={physics.best_seconds === null ? "no device can run it" : bestDevices(physics)}
            />
            <Stat
              label="Best share"
              value={percent(physics.best_share, 0)}
              raw={physics.best_share}
              note="on an accelerator"
            />
            <Stat label="Speed-up" value={times(physics.speedup)} raw={physics.speedup} note="without transfer" />
            <Stat
              label="Transfer"
              value={seconds(physics.transfer_seconds)}
              raw={physics.transfer_seconds}
              note="to that accelerator"
            />
          </dl>
        </>
      )}
    </Widget>
  );
}

function bestDevices({ best_device: device, best_cpu: cpu }: TaskDetail["physics"]): string {
  return [device, cpu].flatMap((name) => (name ? [deviceLabel(name)] : [])).join(" + ");
}

function Bars({ types, noisy }: { types: TypeTime[]; noisy: boolean }) {
  const colour = useTypeColours();
  const longest = Math.max(...types.flatMap((row) => [row.expected_seconds ?? 0, row.real_seconds ?? 0]), 1e-12);
  return (
    <ul className="flex flex-col gap-2.5 px-1 pt-1">
      {types.map((row) => (
        <li key={row.type} data-type={row.type} className="grid grid-cols-[5rem_1fr_6rem] items-center gap-3">
          <span className="truncate text-xs" title={`${count(row.devices)} in the cluster`}>
            {typeLabel(row.type)}
            <span className="text-muted"> × {count(row.devices)}</span>
          </span>
          <span className="flex flex-col gap-0.5">
            <Bar share={(row.expected_seconds ?? 0) / longest} colour={colour(row.type)} className="h-3" />
            {noisy && <Bar share={(row.real_seconds ?? 0) / longest} colour={colour(row.type)} className="h-1" />}
          </span>
          <span className="num text-right text-[0.8125rem]" data-value={row.expected_seconds ?? undefined}>
            {seconds(row.expected_seconds)}
            {noisy && row.real_seconds !== null && (
              <span className="block text-[0.6875rem] text-muted" data-value={row.real_seconds}>
                real {seconds(row.real_seconds)}
              </span>
            )}
          </span>
          {notesOf(row).length > 0 && (
            <span className="col-span-3 -mt-1.5">
              <Notes row={row} />
            </span>
          )}
        </li>
      ))}
    </ul>
  );
}

function Bar({ share, colour, className }: { share: number; colour: string; className: string }) {
  return (
    <span className={`block overflow-hidden rounded-full bg-sunken ${className}`}>
      <span className="block h-full rounded-full" style={{ width: `${share * 100}%`, background: colour }} />
    </span>
  );
}
