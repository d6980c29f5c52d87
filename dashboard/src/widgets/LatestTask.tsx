import { placementText } from "../devices";
import { count, megabytes, number, seconds } from "../format";
import { type LatestResult, useLive, useSchedulers } from "../live";
import { labelOf } from "../schedulers";
import { Link, SchedulerName, Term } from "../ui";

/** The newest task that every scheduler has finished, and their results. */
export function LatestTask() {
  const task = useLive((live) => live.task);
  const results = useLive((live) => live.latestResults);
  const names = useSchedulers();
  if (!task) return null;
  const shortest = Math.min(...Object.values(results).map((result) => result.time ?? Number.MAX_VALUE));
  return (
    <section
      aria-label="Latest task"
      data-testid="latest-task"
      className="glass mb-3.5 flex items-center gap-5 overflow-x-auto rounded-[14px] px-4 py-2.5"
    >
      <div className="shrink-0">
        <Link view="task" change={{ task: task.id }} className="num font-semibold text-accent hover:underline">
          Task {count(task.id)}
        </Link>
        <p className="num text-xs text-muted">
          size {number(task.size)} · <Term name="intensity">intensity</Term> {number(task.intensity, 2)} ·{" "}
          {megabytes(task.memory)}
        </p>
      </div>
      <ul className="flex flex-1 justify-between gap-5">
        {names.map((name) => {
          const result = results[name];
          return result && <Result key={name} name={name} result={result} fastest={result.time === shortest} />;
        })}
      </ul>
    </section>
  );
}

function Result({ name, result, fastest }: { name: string; result: LatestResult; fastest: boolean }) {
  const share = result.device_name ? (result.gpu_fraction ?? 0) : 0;
  return (
    <li className="w-27 shrink-0 text-xs" title={`${labelOf(name)}: ${placementText(result)}`}>
      <SchedulerName name={name} />
      <span className="mt-1 flex items-center gap-2">
        <span aria-hidden className="h-1 flex-1 overflow-hidden rounded-full bg-cpu/60">
          <span className="block h-full bg-gpu" style={{ width: `${share * 100}%` }} />
        </span>
        <span
          className={`num ${result.status !== "ok" ? "text-bad" : fastest ? "font-semibold text-good" : "text-muted"}`}
        >
          {result.status === "ok" ? seconds(result.time) : "failed"}
        </span>
      </span>
    </li>
  );
}
