/** What stands in the way of the run on the screen: schedulers that fail, learners that are not ready. */
import { useShallow } from "zustand/shallow";
import { useLive } from "../live";
import { labelOf } from "../schedulers";
import { SuspendedNotice } from "./SuspendedNotice";

export function RunNotices() {
  const suspended = useLive(
    useShallow((live) => Object.keys(live.suspended).filter((name) => !live.suspended[name]?.left_out)),
  );
  return (
    <>
      <Pretraining />
      {suspended.map((name) => (
        <SuspendedNotice key={name} name={name} link />
      ))}
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
