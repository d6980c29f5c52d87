import type { Polled } from "../../api/polling";
import type { TaskDetail } from "../../api/types";
import { count, megabytes, number, percent, seconds } from "../../format";
import { usePalette } from "../../theme";
import { Badge, Link, Stat, Widget } from "../../ui";

export function Features({ source }: { source: Polled<TaskDetail> }) {
  const task = source.data?.task;
  return (
    <Widget
      id="task-features"
      title="Task"
      caption="What every scheduler knows. Much memory makes the transfer to a GPU slow; high intensity makes the GPU fast."
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

export function Physics({ source }: { source: Polled<TaskDetail> }) {
  const physics = source.data?.physics;
  return (
    <Widget
      id="task-physics"
      title="CPU or GPU"
      caption="The time of the whole task on the CPU and on a GPU. The best share is the choice of the Oracle."
      source={source}
      scroll
    >
      {physics && (
        <>
          <Bars physics={physics} />
          <dl className="grid grid-cols-2 gap-x-6 gap-y-3 px-1 pt-4 sm:grid-cols-4">
            <Stat
              label="Speed-up"
              value={`${number(physics.speedup)}×`}
              raw={physics.speedup}
              note="without transfer"
            />
            <Stat
              label="Transfer"
              value={seconds(physics.transfer_seconds)}
              raw={physics.transfer_seconds}
              note="to the GPU"
            />
            <Stat
              label="Best GPU share"
              value={percent(physics.best_share, 0)}
              raw={physics.best_share}
              note={shareText(physics)}
            />
            <div className="min-w-0">
              <dt className="text-xs text-muted">GPU memory</dt>
              <dd className="pt-1.5">
                <Badge tone={physics.fits_gpu_memory ? "good" : "warn"}>
                  {physics.fits_gpu_memory ? "fits" : "does not fit"}
                </Badge>
              </dd>
            </div>
          </dl>
        </>
      )}
    </Widget>
  );
}

function shareText({ best_share: share }: TaskDetail["physics"]): string {
  if (share === 0) return "all on the CPU";
  return share === 1 ? "all on a GPU" : "split";
}

function Bars({ physics }: { physics: TaskDetail["physics"] }) {
  const palette = usePalette();
  const longest = Math.max(physics.cpu_seconds, physics.gpu_seconds) || 1;
  const bars = [
    { label: "CPU", value: physics.cpu_seconds, colour: palette.cpu },
    { label: "GPU", value: physics.gpu_seconds, colour: palette.gpu },
  ];
  return (
    <ul className="flex flex-col gap-2 px-1 pt-1">
      {bars.map(({ label, value, colour }) => (
        <li key={label} className="grid grid-cols-[2.5rem_1fr_5rem] items-center gap-3">
          <span className="text-xs text-muted">{label}</span>
          <span className="h-3 overflow-hidden rounded-full bg-sunken">
            <span
              className="block h-full rounded-full"
              style={{ width: `${(value / longest) * 100}%`, background: colour }}
            />
          </span>
          <span className="num text-right" data-value={value}>
            {seconds(value)}
          </span>
        </li>
      ))}
    </ul>
  );
}
