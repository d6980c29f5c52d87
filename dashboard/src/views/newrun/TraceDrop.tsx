import { FileUp } from "lucide-react";
import { type DragEvent, useId, useState } from "react";
import { count } from "../../format";
import { type Replay, replayTrace, useReplay } from "../../trace/replay";
import { REQUIRED } from "../../trace/traceFile";
import { Widget } from "../../ui";
import { useDraft } from "./DraftContext";

/** A CSV file of tasks becomes a run with the cluster, schedulers and learning of the form. */
export function TraceDrop() {
  const { draft } = useDraft();
  const id = useId();
  const [over, setOver] = useState(false);
  const replay = useReplay((state) => state.replay);
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    const file = event.dataTransfer.files[0];
    if (file) void replayTrace(draft, file);
  };
  return (
    <Widget
      exported={false}
      id="new-trace"
      title="Replay a trace"
      caption="A CSV file of tasks, on the cluster and with the schedulers chosen here. Other formats: hybrid trace convert."
      scroll
    >
      <label
        htmlFor={id}
        data-testid="trace-drop"
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={drop}
        className={`flex cursor-pointer flex-col items-center gap-1.5 rounded-lg border border-dashed px-4 py-5 text-center text-xs text-muted has-focus-visible:outline-2 has-focus-visible:outline-accent ${over ? "border-accent bg-accent/10" : "border-line-strong"}`}
      >
        <FileUp aria-hidden className="size-5" />
        <span role="status">{replay ? progressOf(replay) : "Drop a CSV file here, or choose one"}</span>
        <code className="font-mono text-[0.6875rem]">{REQUIRED.join(", ")}</code>
        <input
          id={id}
          type="file"
          accept=".csv,text/csv"
          className="sr-only"
          disabled={replay !== null}
          onChange={(event) => {
            const file = event.target.files?.[0];
            if (file) void replayTrace(draft, file);
            event.target.value = "";
          }}
        />
      </label>
    </Widget>
  );
}

function progressOf({ name, tasks, sent, run }: Replay): string {
  if (run === null) return `Starting a run for ${name}…`;
  return `${count(sent)} of ${count(tasks)} tasks of ${name} are sent`;
}
