/** What stands in the way of the run on the screen: schedulers that fail, learners that are not ready. */
import { useShallow } from "zustand/shallow";
import { count } from "../format";
import { useLive } from "../live";
import { labelOf } from "../schedulers";
import { useReplay } from "../trace/replay";
import { Link } from "../ui/Link";
import { isTrace } from "../workload";
import { SuspendedNotice } from "./SuspendedNotice";

export function RunNotices() {
  const suspended = useLive(useShallow((live) => Object.keys(live.suspended)));
  const leftOut = useLive(useShallow((live) => suspended.filter((name) => live.suspended[name]?.left_out)));
  return (
    <>
      <Pretraining />
      <SendingTrace />
      <WaitingForTasks />
      {suspended
        .filter((name) => !leftOut.includes(name))
        .map((name) => (
          <SuspendedNotice key={name} name={name} link />
        ))}
      {leftOut.length > 0 && <LeftOut names={leftOut} />}
    </>
  );
}

function Pretraining() {
  const waiting = useLive(useShallow((live) => live.pretraining));
  const learners = useLive((live) => live.learners);
  if (waiting.length === 0) return null;
  const ready = learners - waiting.length;
  return (
    <div
      role="status"
      data-testid="pretraining"
      className="mb-3.5 rounded-xl border border-accent/40 bg-accent/10 px-4 py-3 text-[0.8125rem]"
    >
      <p>
        <strong className="font-semibold">
          Pre-training the learners: {ready} of {learners} are ready.
        </strong>{" "}
        Waiting for {waiting.map(labelOf).join(", ")}. The first tasks are sent when all have a model.
      </p>
      <div
        className="mt-2 h-1 overflow-hidden rounded-full bg-line"
        role="progressbar"
        aria-label="Learners that are ready"
        aria-valuemin={0}
        aria-valuemax={learners}
        aria-valuenow={ready}
      >
        <div className="h-full bg-accent transition-[width]" style={{ width: `${(100 * ready) / learners}%` }} />
      </div>
    </div>
  );
}

function SendingTrace() {
  const shown = useLive((live) => live.run);
  const replay = useReplay((state) => state.replay);
  if (!replay || replay.run !== shown) return null;
  return (
    <p
      role="status"
      data-testid="sending-trace"
      className="mb-3.5 rounded-xl border border-accent/40 bg-accent/10 px-4 py-3 text-[0.8125rem]"
    >
      <strong className="font-semibold">
        This page sends {replay.name}: {count(replay.sent)} of {count(replay.tasks)} tasks.
      </strong>{" "}
      Other views may be opened meanwhile; closing or reloading the page stops the run.
    </p>
  );
}

/** The page or the command that sends the tasks may have ended without stopping the run. */
function WaitingForTasks() {
  const waiting = useLive(
    ({ spec, state, tasksSent, pretraining }) =>
      spec !== null && isTrace(spec) && state === "running" && tasksSent === 0 && pretraining.length === 0,
  );
  const sending = useReplay((replaying) => replaying.replay !== null);
  if (!waiting || sending) return null;
  return (
    <p
      role="status"
      data-testid="waiting-for-tasks"
      className="mb-3.5 rounded-xl border border-accent/40 bg-accent/10 px-4 py-3 text-[0.8125rem]"
    >
      <strong className="font-semibold">No task has been sent to this run yet.</strong> Its tasks are submitted by a
      page that replays a trace, a command or a program. If that has ended, stop the run.
    </p>
  );
}

/** One line: there is nothing to be done about it any more. */
function LeftOut({ names }: { names: string[] }) {
  return (
    <p data-testid="left-out" className="mb-3.5 px-1 text-[0.8125rem] text-muted">
      Left out of this run because it kept failing:{" "}
      {names.map((name, at) => (
        <span key={name}>
          {at > 0 && ", "}
          <Link view="scheduler" change={{ scheduler: name }} className="text-accent underline">
            {labelOf(name)}
          </Link>
        </span>
      ))}
      . The others are compared without it.
    </p>
  );
}
