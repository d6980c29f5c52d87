import { Send } from "lucide-react";
import { type FormEvent, useState } from "react";
import { ApiError, post } from "../../api/client";
import { isActive } from "../../api/runs";
import type { Accepted } from "../../api/types";
import { useLive } from "../../live";
import { Button, toast, Widget } from "../../ui";
import { openView } from "../../url";
import { TextField } from "../newrun/fields";
import { sortProblems } from "../newrun/problems";
import { EXAMPLE, submission, type Typed } from "./submission";

const FIELDS: { key: keyof Typed; label: string; hint: string }[] = [
  { key: "size", label: "Size", hint: "1000 is 1 s of CPU at intensity 0.5" },
  { key: "compute_intensity", label: "Intensity", hint: "0 … 1" },
  { key: "memory_required", label: "Memory, MB", hint: "what a GPU has to be sent" },
  { key: "dependencies", label: "After tasks", hint: "ids, or nothing" },
];

/** Puts a task of one's own into the run and goes to its page. */
export function Submit({ run }: { run: string }) {
  const state = useLive((live) => live.state);
  const [typed, setTyped] = useState<Typed>(EXAMPLE);
  const [problems, setProblems] = useState<string[]>([]);
  const [busy, setBusy] = useState(false);
  const send = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    try {
      const accepted = await post<Accepted>("/api/tasks", submission(run, typed));
      const id = accepted.task_ids[0];
      setProblems([]);
      toast(`Task #${id} is on its way`);
      openView("task", { run, task: id });
    } catch (error) {
      const known = error instanceof ApiError && error.problems.length > 0;
      setProblems(known ? error.problems : [error instanceof Error ? error.message : String(error)]);
    } finally {
      setBusy(false);
    }
  };
  const sorted = sortProblems(
    problems,
    FIELDS.map(({ key }) => `tasks.0.${key}`),
  );
  const closed = !isActive(state);
  return (
    <Widget
      id="submit-task"
      title="A task of your own"
      hint="Goes to every scheduler of this run like any other task; its page opens and fills with the results."
      empty={closed && "This run has ended and takes no more tasks."}
      scroll
    >
      <form className="flex flex-col gap-4 px-1" onSubmit={(event) => void send(event)} noValidate>
        <div className="grid grid-cols-2 gap-x-3 gap-y-4 lg:grid-cols-4">
          {FIELDS.map(({ key, label, hint }) => (
            <TextField
              key={key}
              id={`task-${key}`}
              label={label}
              hint={hint}
              inputMode={key === "dependencies" ? "text" : "decimal"}
              value={typed[key]}
              problems={sorted.fields[`tasks.0.${key}`]}
              onValue={(value) => setTyped({ ...typed, [key]: value })}
            />
          ))}
        </div>
        {sorted.others.length > 0 && (
          <p role="alert" className="text-xs break-words text-bad">
            {sorted.others.join("; ")}
          </p>
        )}
        <Button type="submit" look="primary" className="self-start" disabled={busy} icon={<Send aria-hidden className="size-4" />}>
          {busy ? "Sending…" : "Submit"}
        </Button>
      </form>
    </Widget>
  );
}
