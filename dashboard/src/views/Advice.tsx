import { useMutation } from "@tanstack/react-query";
import { Compass, FileUp } from "lucide-react";
import { type FormEvent, useId, useState } from "react";
import { post, problemsOf } from "../api/client";
import { queryClient, usePolled } from "../api/polling";
import type { Advice as AdviceRow } from "../api/types";
import { dateTime } from "../format";
import { Button, type Column, Link, Table, Widget } from "../ui";
import { type Answers, FIELDS, requestOf } from "./advice/request";
import { TextField } from "./newrun/fields";
import { sortProblems } from "./newrun/problems";

/** These machines, these jobs: which scheduler to use. The lab runs what has to be run and writes the page. */
export default function Advice() {
  return (
    <div className="flex flex-col gap-4">
      <Question />
      <Requests />
    </div>
  );
}

interface DroppedFile {
  name: string;
  text: string;
}

function Question() {
  const [answers, setAnswers] = useState<Answers>({});
  const [platform, setPlatform] = useState<DroppedFile | null>(null);
  const [jobs, setJobs] = useState<DroppedFile | null>(null);
  const ask = useMutation({
    mutationFn: () => post<AdviceRow>("/api/advice", requestOf(answers, platform?.text, jobs)),
    onSuccess: () => queryClient.invalidateQueries({ queryKey: ["/api/advice"] }),
  });
  const problems = sortProblems(
    ask.error ? problemsOf(ask.error) : [],
    FIELDS.map(({ path }) => path),
  );
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    ask.mutate();
  };
  return (
    <Widget
      exported={false}
      id="advice-question"
      title="Which scheduler should I use?"
      caption="Drop a platform file and a trace, or leave them out: then it is the default node and generated jobs."
    >
      <form className="flex flex-col gap-4 px-1" data-testid="advice-form" onSubmit={onSubmit} noValidate>
        <div className="grid gap-3 md:grid-cols-2">
          <FileDrop
            title="Machines: a platform file (YAML)"
            testId="advice-platform"
            file={platform}
            onFile={setPlatform}
          />
          <FileDrop title="Jobs: a trace, such as CSV or SWF" testId="advice-trace" file={jobs} onFile={setJobs} />
        </div>
        <div className="grid grid-cols-2 gap-x-3 gap-y-4 lg:grid-cols-4">
          {FIELDS.filter(({ generated }) => !generated || !jobs).map(({ path, label, hint, placeholder, text }) => (
            <TextField
              key={path}
              id={`advice-${path}`}
              label={label}
              hint={hint}
              placeholder={placeholder}
              inputMode={text ? "text" : "decimal"}
              value={answers[path] ?? ""}
              problems={problems.fields[path]}
              onValue={(value) => setAnswers({ ...answers, [path]: value })}
            />
          ))}
        </div>
        {problems.others.length > 0 && (
          <p role="alert" className="text-xs break-words text-bad">
            {problems.others.join("; ")}
          </p>
        )}
        <Button
          type="submit"
          variant="primary"
          className="self-start"
          disabled={ask.isPending}
          icon={<Compass aria-hidden className="size-4" />}
        >
          {ask.isPending ? "Asking…" : "Ask"}
        </Button>
      </form>
    </Widget>
  );
}

interface FileDropProps {
  title: string;
  testId: string;
  file: DroppedFile | null;
  onFile: (file: DroppedFile | null) => void;
}

function FileDrop({ title, testId, file, onFile }: FileDropProps) {
  const id = useId();
  const read = async (chosen: File | undefined) => {
    if (chosen) onFile({ name: chosen.name, text: await chosen.text() });
  };
  return (
    <div className="flex flex-col gap-1">
      <label
        htmlFor={id}
        data-testid={testId}
        onDragOver={(event) => event.preventDefault()}
        onDrop={(event) => {
          event.preventDefault();
          void read(event.dataTransfer.files[0]);
        }}
        className="flex cursor-pointer flex-col items-center gap-1.5 rounded-lg border border-dashed border-line-strong px-4 py-4 text-center text-xs text-muted has-focus-visible:outline-2 has-focus-visible:outline-accent"
      >
        <FileUp aria-hidden className="size-5" />
        {title}
        <span role="status" className={file ? "font-medium text-ink" : "text-faint"}>
          {file ? file.name : "drop it here, or choose it"}
        </span>
        <input
          id={id}
          type="file"
          className="sr-only"
          onChange={(event) => {
            void read(event.target.files?.[0]);
            event.target.value = "";
          }}
        />
      </label>
      {file && (
        <Button className="self-center" onClick={() => onFile(null)}>
          Leave out {file.name}
        </Button>
      )}
    </div>
  );
}

function Requests() {
  const requests = usePolled<AdviceRow[]>("/api/advice", 1_000);
  if (!requests.data?.length) return null;
  return (
    <Widget id="advice-requests" title="Answers" caption="Newest first." source={requests} scroll>
      <Table
        caption="Requests for advice"
        columns={COLUMNS}
        rows={requests.data}
        rowKey={(row) => row.name}
        sort={{ key: "asked_at", descending: true }}
      />
    </Widget>
  );
}

const COLUMNS: Column<AdviceRow>[] = [
  {
    key: "asked_at",
    header: "Asked",
    value: (row) => row.asked_at,
    show: (row) => dateTime(row.asked_at),
  },
  {
    key: "state",
    header: "State",
    value: (row) => row.state ?? "",
    show: (row) => (row.state === "running" ? `${Math.round(100 * (row.share ?? 0))} % of its time` : row.state),
  },
  {
    key: "answer",
    header: "Answer",
    sentence: true,
    value: (row) => row.headline || row.text || "",
    show: (row) =>
      row.state === "done" ? (
        <Link view="report" change={{ report: row.name }} className="text-accent hover:underline">
          {row.headline}
        </Link>
      ) : (
        <span className={row.state === "failed" ? "text-bad" : "text-muted"}>{row.text}</span>
      ),
  },
];
