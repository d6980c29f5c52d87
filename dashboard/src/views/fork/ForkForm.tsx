import { useMutation } from "@tanstack/react-query";
import { GitFork } from "lucide-react";
import { type FormEvent, useState } from "react";
import { post, problemsOf, runPath } from "../../api/client";
import type { Run, RunSpec } from "../../api/types";
import { Button, toast, Widget } from "../../ui";
import { openView } from "../../url";
import { TextField } from "../newrun/fields";
import { sortProblems } from "../newrun/problems";
import { changesOf, forkFields } from "./changes";

/** Forks a run at a task with something changed, and opens the comparison. */
export function ForkForm({ run, spec, at }: { run: string; spec: RunSpec; at: number | null }) {
  const fields = forkFields(spec);
  const [task, setTask] = useState(at === null ? "" : String(at));
  const [values, setValues] = useState<Record<string, string>>({});
  const [lines, setLines] = useState("");
  const fork = useMutation({
    mutationFn: () => post<Run>(runPath(run, "/fork"), { at: Number(task), changes: changesOf(fields, values, lines) }),
    onSuccess: (started) => {
      toast(`Forked at task #${started.fork?.at}`);
      openView("compare", { run: started.run, a: run, b: started.run });
    },
  });
  const problems = fork.error ? problemsOf(fork.error) : [];
  const sorted = sortProblems(problems, ["at", ...fields.map(({ path }) => path)]);
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    fork.mutate();
  };
  const real = spec.execution.mode === "real";
  return (
    <Widget
      exported={false}
      id="fork"
      title={at === null ? "Fork this run" : "Fork from here"}
      caption="What if? A new run shares everything before the task and goes on from there with these changes. A device that is removed finishes what it was given; a new one is idle."
      empty={real && "A real run cannot be forked: its machine cannot be put back to an earlier state."}
      scroll
    >
      <form className="flex flex-col gap-4 px-1" data-testid="fork-form" onSubmit={onSubmit} noValidate>
        <div className="grid grid-cols-2 gap-x-3 gap-y-4 lg:grid-cols-4">
          <TextField
            id="fork-at"
            label="From task"
            hint="the first one that is decided anew"
            inputMode="numeric"
            value={task}
            problems={sorted.fields.at}
            onValue={setTask}
          />
          {fields.map(({ path, label, now }) => (
            <TextField
              key={path}
              id={`fork-${path}`}
              label={label}
              hint={`now ${now}`}
              inputMode="decimal"
              value={values[path] ?? now}
              problems={sorted.fields[path]}
              onValue={(value) => setValues({ ...values, [path]: value })}
            />
          ))}
        </div>
        <label className="flex flex-col gap-1 text-xs text-muted" htmlFor="fork-lines">
          Other changes of the spec, one a line: path=value
          <textarea
            id="fork-lines"
            rows={2}
            spellCheck={false}
            placeholder="schedulers=eft,greedy"
            className="rounded-lg border border-line bg-raised px-2.5 py-1.5 font-mono text-xs text-ink placeholder:text-faint hover:border-line-strong"
            value={lines}
            onChange={(event) => setLines(event.target.value)}
          />
        </label>
        {sorted.others.length > 0 && (
          <p role="alert" className="text-xs break-words text-bad">
            {sorted.others.join("; ")}
          </p>
        )}
        <Button
          type="submit"
          variant="primary"
          className="self-start"
          data-testid="fork-start"
          disabled={fork.isPending || !/^\d+$/.test(task.trim())}
          icon={<GitFork aria-hidden className="size-4" />}
        >
          {fork.isPending ? "Forking…" : "Fork"}
        </Button>
      </form>
    </Widget>
  );
}
