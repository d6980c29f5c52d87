import { count, megabytes, number, percent, seconds } from "../format";
import { type LatestResult, useLive, useSchedulers } from "../live";
import { Link, SchedulerName } from "../ui";

/** The newest task that all have finished, and what each made of it. */
export function Now() {
  const task = useLive((live) => live.task);
  const results = useLive((live) => live.latestResults);
  const names = useSchedulers();
  if (!task) return null;
  const fastest = Math.min(...Object.values(results).map((result) => result.time));
  return (
    <section aria-label="Newest task" data-testid="now" className="glass mb-3.5 flex items-center gap-5 overflow-x-auto rounded-[14px] px-4 py-2.5">
      <div className="shrink-0">
        <Link view="task" change={{ task: task.id }} className="num font-semibold text-accent hover:underline">
          Task {count(task.id)}
        </Link>
        <p className="num text-xs text-muted">
          size {number(task.size)} · intensity {number(task.intensity, 2)} · {megabytes(task.memory)}
        </p>
      </div>
      <ul className="flex flex-1 justify-between gap-5">
        {names.map((name) => results[name] && <Made key={name} name={name} result={results[name]} best={results[name].time <= fastest} />)}
      </ul>
    </section>
  );
}

function Made({ name, result, best }: { name: string; result: LatestResult; best: boolean }) {
  return (
    <li className="w-27 shrink-0 text-xs" title={`${percent(result.gpu_fraction)} on ${result.gpu_fraction > 0 ? `GPU ${result.gpu}` : "the CPU"}`}>
      <SchedulerName name={name} />
      <span className="mt-1 flex items-center gap-2">
        <span aria-hidden className="h-1 flex-1 overflow-hidden rounded-full bg-cpu/60">
          <span className="block h-full bg-gpu" style={{ width: `${result.gpu_fraction * 100}%` }} />
        </span>
        <span className={`num ${result.status !== "ok" ? "text-bad" : best ? "font-semibold text-good" : "text-muted"}`}>
          {result.status === "ok" ? seconds(result.time) : "failed"}
        </span>
      </span>
    </li>
  );
}
