import { useMutation } from "@tanstack/react-query";
import { Send } from "lucide-react";
import { type FormEvent, useState } from "react";
import { post, problemsOf } from "../../api/client";
import { isActive } from "../../api/runs";
import type { Accepted } from "../../api/types";
import { useLive } from "../../live";
import { Button, toast, Widget } from "../../ui";
import { openView } from "../../url";
import { TextField } from "../newrun/fields";
import { sortProblems } from "../newrun/problems";
import { EXAMPLE, submission, type TaskInput } from "./submission";

const FIELDS: { key: keyof TaskInput; label: string; hint: string }[] = [
  { key: "size", label: "Size", hint: "1000 is 1 s of CPU at intensity 0.5" },
  { key: "compute_intensity", label: "Intensity", hint: "0 … 1" },
  { key: "memory_required", label: "Memory, MB", hint: "transferred to the device" },
  { key: "dependencies", label: "After tasks", hint: "numbers, or empty" },
  { key: "width", label: "Devices at once", hint: "of one type; empty: 1" },
  { key: "kind", label: "Kind", hint: "a row of the measured table" },
];

/** Submits a task to the run and opens its page. */
export function SubmitTask({ run }: { run: string }) {
  const state = useLive((live) => live.state);
  const measured = useLive((live) => (live.spec?.physics.measured.length ?? 0) > 0);
  const fields = FIELDS.filter(({ key }) => measured || key !== "kind");
  const [input, setInput] = useState<TaskInput>(EXAMPLE);
  const submit = useMutation({
    mutationFn: () => post<Accepted>("/api/tasks", submission(run, input)),
    onSuccess: ({ task_ids: [task] }) => {
      toast(`Task #${task} is submitted`);
      openView("task", { run, task });
    },
  });
  const problems = submit.error ? problemsOf(submit.error) : [];
  const sorted = sortProblems(
    problems,
    fields.map(({ key }) => `tasks.0.${key}`),
  );
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    submit.mutate();
  };
  return (
    <Widget
      exported={false}
      id="submit-task"
      title="Submit a task"
      caption="It goes to every scheduler of this run. Its page opens and shows the results as they arrive."
      empty={!isActive(state) && "This run has ended and accepts no more tasks."}
      scroll
    >
      <form className="flex flex-col gap-4 px-1" onSubmit={onSubmit} noValidate>
        <div className="grid grid-cols-2 gap-x-3 gap-y-4 lg:grid-cols-4">
          {fields.map(({ key, label, hint }) => (
            <TextField
              key={key}
              id={`task-${key}`}
              label={label}
              hint={hint}
              inputMode={key === "dependencies" || key === "kind" ? "text" : "decimal"}
              value={input[key]}
              problems={sorted.fields[`tasks.0.${key}`]}
              onValue={(value) => setInput({ ...input, [key]: value })}
            />
          ))}
        </div>
        {sorted.others.length > 0 && (
          <p role="alert" className="text-xs break-words text-bad">
            {sorted.others.join("; ")}
          </p>
        )}
        <Button
          type="submit"
          variant="primary"
          className="self-start"
          disabled={submit.isPending}
          icon={<Send aria-hidden className="size-4" />}
        >
          {submit.isPending ? "Submitting…" : "Submit"}
        </Button>
      </form>
    </Widget>
  );
}
