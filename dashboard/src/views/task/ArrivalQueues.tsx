import type { Polled } from "../../api/polling";
import type { ArrivalQueue, ArrivalQueues as Data, TaskDetail } from "../../api/types";
import { deviceLabel, devicesLabel, typeLabel } from "../../devices";
import { count, number, seconds } from "../../format";
import { Badge, type Column, numberColumn, SchedulerName, schedulerColumn, Table, Widget } from "../../ui";

type DeviceQueue = ArrivalQueue["devices"][number];

/** What one scheduler expected, and what happened. */
export interface Outcome {
  scheduler: string;
  devices: string;
  /** The most work that was queued on a device that it chose. */
  queued: number;
  ahead: number;
  shortest: number;
  expected: number | null;
  real: number;
  wait: number;
  /** Seconds after the arrival. */
  started: number;
  finish: number;
  turnaround: number;
  complete: boolean;
}

type Arrival = Pick<Data, "arrival_time" | "queues">;

/** In the order of their turnaround, the shortest first. */
export function outcomesOf({ arrival_time, queues }: Arrival, results: TaskDetail["results"]): Outcome[] {
  const outcomes = queues.flatMap((queue) => {
    const result = results.find((row) => row.scheduler === queue.scheduler);
    if (!result) return [];
    const chosen = queue.devices.filter((device) => device.chosen);
    return [
      {
        scheduler: queue.scheduler,
        devices: devicesLabel(result),
        queued: Math.max(0, ...chosen.map((device) => device.seconds)),
        ahead: Math.max(0, ...chosen.map((device) => device.tasks)),
        shortest: Math.min(...queue.types.map((type) => type.shortest)),
        expected: result.expected_time > 0 ? result.expected_time : null,
        real: result.time,
        wait: result.wait,
        started: queue.started - arrival_time,
        finish: queue.finish,
        turnaround: result.turnaround,
        complete: queue.complete,
      },
    ];
  });
  return outcomes.sort((left, right) => left.turnaround - right.turnaround);
}

const COLUMNS: Column<Outcome>[] = [
  schedulerColumn((row) => row.scheduler),
  { key: "devices", header: "Chosen", value: (row) => row.devices },
  {
    ...numberColumn<Outcome>("queued", "Queued there", seconds, "Work of earlier tasks on the chosen device"),
    show: (row) => `${row.complete ? "" : "at least "}${seconds(row.queued)}`,
  },
  numberColumn("ahead", "Tasks ahead", count, "Earlier tasks on the chosen device that were not done"),
  numberColumn("shortest", "Shortest queue", seconds, "Work on the device of the cluster that had the least"),
  numberColumn("expected", "Expected", seconds, "Execution time that the scheduler expected; not all say it"),
  numberColumn("real", "Real", seconds, "Execution time"),
  numberColumn("wait", "Wait", seconds, "Time in queues"),
  numberColumn("started", "Started after", seconds, "From arrival to the begin of its first part"),
  numberColumn("turnaround", "Turnaround", seconds, "From arrival to the end"),
  numberColumn("finish", "Finish", (at) => `${number(at, 5)} s`, "Simulated time"),
];

interface Cell {
  key: string;
  label: string;
  seconds: number;
  tasks: number;
  chosen: boolean;
  /** Of a type: the least and the most of its devices. */
  range: [number, number] | null;
}

/** Each device where all are listed; otherwise each type. */
export function cellsOf(queue: ArrivalQueue): Cell[] {
  const total = queue.types.reduce((sum, type) => sum + type.devices, 0);
  if (queue.devices.length >= total) {
    return queue.devices.map((device) => ({
      ...device,
      key: device.device,
      label: deviceLabel(device.device),
      range: null,
    }));
  }
  return queue.types.map((type) => ({
    key: type.type,
    label: `${typeLabel(type.type)} × ${count(type.devices)}`,
    seconds: type.seconds / type.devices,
    tasks: type.tasks,
    chosen: queue.devices.some((device: DeviceQueue) => device.chosen && device.type === type.type),
    range: [type.shortest, type.longest],
  }));
}

interface Props {
  source: Polled<Data>;
  detail: Polled<TaskDetail>;
}

/** What was queued when the task arrived, and what became of it. */
export function ArrivalQueues({ source, detail }: Props) {
  const queues = source.data?.queues ?? [];
  const rows = source.data ? outcomesOf(source.data, detail.data?.results ?? []) : [];
  return (
    <Widget
      id="task-queues"
      title="Queues when it arrived"
      caption="Work of earlier tasks that each device still had to do, and what came of the decision. Best: a device that ends early, not only a fast one."
      source={source}
      empty={rows.length === 0 && "No scheduler has a result yet."}
      scroll
    >
      <Table
        caption="What each scheduler found, expected and got"
        columns={COLUMNS}
        rows={rows}
        rowKey={(row) => row.scheduler}
        rowAttributes={(row) => ({ "data-scheduler": row.scheduler })}
      />
      <QueueMatrix queues={rows.flatMap(({ scheduler }) => queues.filter((queue) => queue.scheduler === scheduler))} />
    </Widget>
  );
}

/** A row per scheduler, a column per device or type; longer queues are darker. */
function QueueMatrix({ queues }: { queues: ArrivalQueue[] }) {
  const longest = Math.max(1e-9, ...queues.flatMap((queue) => cellsOf(queue).map((cell) => cell.seconds)));
  const [first] = queues;
  if (!first) return null;
  return (
    <table className="num mt-4 w-full border-separate border-spacing-0.5 text-xs">
      <caption className="pb-1 text-left text-muted">
        Work queued on each device at the arrival; the scheduler's choice is framed.
      </caption>
      <thead>
        <tr>
          <th scope="col" className="px-1.5 py-1 text-left font-medium text-muted">
            Scheduler
          </th>
          {cellsOf(first).map((cell) => (
            <th key={cell.key} scope="col" className="px-1.5 py-1 text-right font-medium whitespace-nowrap text-muted">
              {cell.label}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {queues.map((queue) => (
          <tr key={queue.scheduler} data-queue-of={queue.scheduler}>
            <th scope="row" className="px-1.5 py-1 text-left font-normal whitespace-nowrap">
              <SchedulerName name={queue.scheduler} /> {!queue.complete && <Badge tone="warn">at least</Badge>}
            </th>
            {cellsOf(queue).map((cell) => (
              <td
                key={cell.key}
                data-device={cell.key}
                data-value={cell.seconds}
                title={`${count(cell.tasks)} tasks${cell.chosen ? "; chosen" : ""}`}
                className={`rounded px-1.5 py-1 text-right whitespace-nowrap ${cell.chosen ? "font-semibold outline-2 -outline-offset-2 outline-accent" : ""}`}
                style={{
                  background: `color-mix(in oklab, var(--cpu) ${Math.round(35 * shade(cell.seconds, longest))}%, transparent)`,
                }}
              >
                {cell.range ? `${seconds(cell.range[0])} – ${seconds(cell.range[1])}` : seconds(cell.seconds)}
                <span className="block text-[0.6875rem]">
                  {count(cell.tasks)} {cell.tasks === 1 ? "task" : "tasks"}
                  {cell.chosen && <span className="sr-only">, chosen</span>}
                </span>
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** 0 … 1 over three decades: queues differ by orders of magnitude. */
export function shade(value: number, longest: number): number {
  return value <= 0 ? 0 : Math.min(1, Math.max(0, 1 + Math.log10(value / longest) / 3));
}
