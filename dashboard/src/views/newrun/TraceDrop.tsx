import { FileUp } from "lucide-react";
import { type DragEvent, useId, useState } from "react";
import { toastFailure } from "../../api/polling";
import { count } from "../../format";
import { toast, Widget } from "../../ui";
import { openView } from "../../url";
import { useDraft } from "./DraftContext";
import { REQUIRED, readTrace, sendTrace, startTrace, stopRun } from "./traceFile";

/** A CSV file of tasks becomes a run with the cluster, schedulers and learning of the form. */
export function TraceDrop() {
  const { draft } = useDraft();
  const id = useId();
  const [over, setOver] = useState(false);
  const [progress, setProgress] = useState<string | null>(null);
  const replay = async (file: File) => {
    try {
      const trace = readTrace(file.name, await file.text());
      setProgress(`Starting a run for ${count(trace.lines.length)} tasks…`);
      const run = await startTrace(draft, trace);
      const report = (sent: number) => setProgress(`${count(sent)} of ${count(trace.lines.length)} tasks sent`);
      await sendTrace(run, trace, report).catch(async (error: unknown) => {
        await stopRun(run); // or it would wait for tasks for ever
        throw error;
      });
      toast(`${count(trace.lines.length)} tasks of ${trace.name} are sent`);
      openView("arena", { run: run.run });
    } catch (error) {
      toastFailure("Could not replay the trace", error instanceof Error ? error : new Error(String(error)));
    }
    setProgress(null);
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    const file = event.dataTransfer.files[0];
    if (file) void replay(file);
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
        <span role="status">{progress ?? "Drop a CSV file here, or choose one"}</span>
        <code className="font-mono text-[0.6875rem]">{REQUIRED.join(", ")}</code>
        <input
          id={id}
          type="file"
          accept=".csv,text/csv"
          className="sr-only"
          disabled={progress !== null}
          onChange={(event) => {
            const file = event.target.files?.[0];
            if (file) void replay(file);
            event.target.value = "";
          }}
        />
      </label>
    </Widget>
  );
}
