import { ChevronLeft, ChevronRight } from "lucide-react";
import { type FormEvent, useState } from "react";
import { runPath } from "../api/client";
import { type Polled, usePolled } from "../api/polling";
import type { Choices as AllChoices, ArrivalQueues as Queues, TaskDetail } from "../api/types";
import { count } from "../format";
import { useLive } from "../live";
import { Badge, Button, Empty, Skeleton } from "../ui";
import { openView, useParameter } from "../url";
import { ForkForm } from "./fork/ForkForm";
import { useSelectedRun } from "./selectedRun";
import { ArrivalQueues } from "./task/ArrivalQueues";
import { Choices } from "./task/Choices";
import { Features, Physics } from "./task/Physics";
import { Explanations, Results, TimeByDevice } from "./task/Results";
import { SubmitTask } from "./task/SubmitTask";

export default function Task() {
  const run = useSelectedRun();
  const selected = useParameter("task");
  const newest = useLive((live) => live.task?.id ?? null);
  const spec = useLive((live) => live.spec);
  // Without a task in the address: the newest one at the time the page was opened.
  const [first] = useState(newest);
  const task = selected !== null && /^\d+$/.test(selected) ? Number(selected) : (first ?? newest);
  if (!run) return <Skeleton />;
  return (
    <div className="flex flex-col gap-4">
      <Heading task={task} newest={newest} />
      {task === null ? (
        <Empty>No task has been finished by every scheduler yet.</Empty>
      ) : (
        <Details key={`${run}.${task}`} run={run} task={task} />
      )}
      {task !== null && spec && <ForkForm key={`${run}.${task}.fork`} run={run} spec={spec} at={task} />}
      <SubmitTask run={run} />
    </div>
  );
}

function Heading({ task, newest }: { task: number | null; newest: number | null }) {
  const [typed, setTyped] = useState("");
  const jump = (event: FormEvent) => {
    event.preventDefault();
    if (/^\d+$/.test(typed.trim())) openView("task", { task: Number(typed) });
  };
  const to = (id: number | null) => openView("task", { task: id });
  return (
    <div className="flex flex-wrap items-center gap-2">
      <h2 className="num mr-2 text-lg font-semibold tracking-tight" data-testid="task-title">
        Task {task === null ? "" : `#${count(task)}`}
      </h2>
      <Button
        data-testid="task-previous"
        disabled={task === null || task === 0}
        icon={<ChevronLeft aria-hidden className="size-4" />}
        onClick={() => to((task ?? 1) - 1)}
      >
        Previous
      </Button>
      <Button
        data-testid="task-next"
        disabled={task === null || (newest !== null && task >= newest)}
        icon={<ChevronRight aria-hidden className="size-4" />}
        onClick={() => to((task ?? -1) + 1)}
      >
        Next
      </Button>
      {newest !== null && task !== newest && (
        <Button variant="ghost" onClick={() => to(newest)}>
          Newest
        </Button>
      )}
      <form className="ml-auto flex items-center gap-2" onSubmit={jump}>
        <input
          aria-label="Task number"
          placeholder="Task number"
          inputMode="numeric"
          className="num h-9 w-32 rounded-lg border border-line bg-raised px-2.5 placeholder:text-faint hover:border-line-strong"
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
        />
        <Button type="submit">Go</Button>
      </form>
    </div>
  );
}

/** Polled until every scheduler has a result; then it no longer changes. */
function Details({ run, task }: { run: string; task: number }) {
  const schedulers = useLive((live) => live.spec?.schedulers.length ?? 0);
  const [complete, setComplete] = useState(false);
  const detail = usePolled<TaskDetail>(runPath(run, `/tasks/${task}`), complete ? 0 : 2_000);
  const queues = usePolled<Queues>(detail.data ? runPath(run, `/tasks/${task}/queues`) : null, complete ? 0 : 5_000);
  const choices = usePolled<AllChoices>(
    detail.data ? runPath(run, `/tasks/${task}/choices`) : null,
    complete ? 0 : 5_000,
  );
  const done = detail.data !== null && schedulers > 0 && detail.data.results.length >= schedulers;
  if (done && !complete) setComplete(true);
  if (detail.error?.status === 404 && detail.data === null) return <NoResult task={task} />;
  return (
    <>
      {detail.data && !done && <Progress detail={detail} schedulers={schedulers} />}
      <div className="grid grid-cols-1 gap-4 lg:grid-cols-[minmax(0,1fr)_minmax(0,1fr)]">
        <Features source={detail} />
        <Physics source={detail} />
      </div>
      <Results source={detail} />
      <ArrivalQueues source={queues} detail={detail} />
      <Choices source={choices} />
      <div className="grid grid-cols-1 gap-4 xl:grid-cols-[minmax(0,1fr)_minmax(0,1fr)]">
        <div className="h-88 xl:h-full xl:min-h-88">
          <TimeByDevice source={detail} />
        </div>
        <Explanations source={detail} />
      </div>
    </>
  );
}

function Progress({ detail, schedulers }: { detail: Polled<TaskDetail>; schedulers: number }) {
  return (
    <p role="status">
      <Badge tone="warn">
        {detail.data?.results.length ?? 0} of {schedulers} schedulers have a result
      </Badge>
    </p>
  );
}

function NoResult({ task }: { task: number }) {
  return (
    <div className="glass rounded-[14px] py-8" role="status">
      <Empty>
        This run has no result for task #{count(task)} yet. A task that was just submitted appears here by itself.
      </Empty>
    </div>
  );
}
