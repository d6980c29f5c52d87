import { ChevronLeft, ChevronRight } from "lucide-react";
import { type FormEvent, useState } from "react";
import { runPath } from "../api/client";
import type { TaskDetail } from "../api/types";
import { type Polled, usePolled } from "../api/usePolled";
import { count } from "../format";
import { useLive } from "../live";
import { Badge, Button, Empty, Skeleton } from "../ui";
import { openView, useParameter } from "../url";
import { useChosenRun } from "./chosenRun";
import { Outcomes, Reasons, TimeSplit } from "./task/Outcomes";
import { Features, Physics } from "./task/Physics";
import { Submit } from "./task/Submit";

export default function Task() {
  const run = useChosenRun();
  const asked = useParameter("task");
  const newest = useLive((live) => live.task?.id ?? null);
  // Without a task in the address it is the newest of when the page was opened, and stays that.
  const [first] = useState(newest);
  const task = asked !== null && /^\d+$/.test(asked) ? Number(asked) : (first ?? newest);
  if (!run) return <Skeleton />;
  return (
    <div className="flex flex-col gap-4">
      <Heading task={task} newest={newest} />
      {task === null ? <Empty>No task has been done by every scheduler yet.</Empty> : <About key={`${run}.${task}`} run={run} task={task} />}
      <Submit run={run} />
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
        <Button look="ghost" onClick={() => to(newest)}>
          Newest
        </Button>
      )}
      <form className="ml-auto flex items-center gap-2" onSubmit={jump}>
        <input
          aria-label="Number of a task"
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

/** A task whose results are still coming is asked for again; a complete one does not change. */
function About({ run, task }: { run: string; task: number }) {
  const schedulers = useLive((live) => live.spec?.schedulers.length ?? 0);
  const [complete, setComplete] = useState(false);
  const detail = usePolled<TaskDetail>(runPath(run, `/tasks/${task}`), complete ? 0 : 2_000);
  const done = detail.data !== null && schedulers > 0 && detail.data.results.length >= schedulers;
  if (done && !complete) setComplete(true);
  if (detail.error?.status === 404 && detail.data === null) return <NotThere task={task} />;
  return (
    <>
      {detail.data && !done && <Coming detail={detail} schedulers={schedulers} />}
      <div className="grid grid-cols-1 gap-4 lg:grid-cols-[minmax(0,1fr)_minmax(0,1fr)]">
        <Features source={detail} />
        <Physics source={detail} />
      </div>
      <Outcomes source={detail} />
      <div className="grid grid-cols-1 gap-4 xl:grid-cols-[minmax(0,1fr)_minmax(0,1fr)]">
        <div className="h-88 xl:h-full xl:min-h-88">
          <TimeSplit source={detail} />
        </div>
        <Reasons source={detail} />
      </div>
    </>
  );
}

function Coming({ detail, schedulers }: { detail: Polled<TaskDetail>; schedulers: number }) {
  return (
    <p role="status">
      <Badge tone="warn">
        {detail.data?.results.length ?? 0} of {schedulers} schedulers have a result
      </Badge>
    </p>
  );
}

function NotThere({ task }: { task: number }) {
  return (
    <div className="glass rounded-[14px] py-8" role="status">
      <Empty>
        This run has no result for task #{count(task)} yet. If it was just sent, it appears here by itself.
      </Empty>
    </div>
  );
}
