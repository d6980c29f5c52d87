import { useEffect, useRef, useState } from "react";
import { useStore } from "zustand";
import { createStore } from "zustand/vanilla";
import { Button } from "../ui/Button";
import { Link } from "../ui/Link";

const KEY = "hybrid.tour";

const STEPS: { title: string; text: string }[] = [
  {
    title: "One stream of tasks, many schedulers",
    text: "Every scheduler gets the same tasks and a cluster of its own. The line at the top says what this run is: its cluster, its workload, its load.",
  },
  {
    title: "Who is best",
    text: "The race shows each scheduler's turnaround: its execution and its waiting. Set weights in the ranking if energy or cost counts for you, too.",
  },
  {
    title: "Why",
    text: "Click a scheduler for its page, or a task for what every scheduler did with it. Words with a dotted line explain themselves.",
  },
  {
    title: "Your own question",
    text: "The plus at the top starts a run with your cluster and workload, or replays your own trace. History compares runs, with seeds and intervals.",
  },
  {
    title: "Take it with you",
    text: "Every chart has a button for PNG, SVG and CSV, and the address of the page is a link to what you see.",
  },
];

const opened = createStore<boolean>(() => localStorage.getItem(KEY) === null);

export function openTour(): void {
  opened.setState(true, true);
}

/** Five short texts on the first visit; the help menu opens them again. */
export function Tour() {
  const open = useStore(opened);
  const [step, setStep] = useState(0);
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (open) {
      dialog.current?.showModal();
      // The dialog would give the focus to its first button, which leaves the tour.
      dialog.current?.querySelector<HTMLElement>("[data-testid='tour-next']")?.focus();
    }
    setStep(0);
  }, [open]);
  if (!open) return null;
  const close = () => {
    localStorage.setItem(KEY, "seen");
    opened.setState(false, true);
  };
  const last = step === STEPS.length - 1;
  return (
    <dialog
      ref={dialog}
      data-testid="tour"
      aria-labelledby="tour-title"
      className="m-auto w-[26rem] max-w-[calc(100vw-2rem)] rounded-2xl border border-line-strong bg-raised p-6 text-ink backdrop:bg-black/50"
      onClose={close}
    >
      <p className="text-xs text-muted">
        {step + 1} of {STEPS.length}
      </p>
      <h2 id="tour-title" className="mt-1 text-lg font-semibold tracking-tight">
        {STEPS[step]?.title}
      </h2>
      <p className="mt-2 min-h-20 text-muted">{STEPS[step]?.text}</p>
      <div className="mt-4 flex items-center gap-2">
        <Button variant="ghost" onClick={close}>
          Skip
        </Button>
        <Link view="guide" className="text-xs text-accent underline" onClick={close}>
          The guide
        </Link>
        <Button
          data-testid="tour-next"
          className="ml-auto"
          variant="primary"
          onClick={() => (last ? close() : setStep(step + 1))}
        >
          {last ? "Start" : "Next"}
        </Button>
      </div>
    </dialog>
  );
}
