import { useMutation } from "@tanstack/react-query";
import { FileUp } from "lucide-react";
import { useId, useState } from "react";
import { post } from "../api/client";
import { queryClient, toastFailure, usePolled } from "../api/polling";
import type { AdviceRequest, Advice as AdviceRow } from "../api/types";
import { dateTime } from "../format";
import { Button, type Column, Link, Table, Widget } from "../ui";

const NOTHING: AdviceRequest = {
  platform: "",
  platform_file: "",
  trace: "",
  trace_name: "jobs.csv",
  preset: "hpc",
  objective: "turnaround=1",
  budget_minutes: 5,
  tasks: 1000,
};

/** These machines, these jobs: which scheduler to use. The lab runs what has to be run and writes the page. */
export default function Advice() {
  return (
    <div className="flex flex-col gap-4">
      <Question />
      <Requests />
    </div>
  );
}

function Question() {
  const [request, setRequest] = useState(NOTHING);
  const change = (part: Partial<AdviceRequest>) => setRequest((before) => ({ ...before, ...part }));
  const ask = useMutation({
    mutationFn: () => post<AdviceRow>("/api/advice", request),
    onSuccess: () => queryClient.invalidateQueries({ queryKey: ["/api/advice"] }),
    onError: (error) => toastFailure("Could not ask for advice", error),
  });
  return (
    <Widget
      exported={false}
      id="advice-question"
      title="Which scheduler should I use?"
      caption="Drop a platform file and a trace, or leave them out: then it is the default node and generated jobs."
    >
      <div className="grid grid-cols-1 gap-3 p-1 md:grid-cols-2">
        <FileDrop
          label={request.platform_file ? "Platform chosen" : "Platform (YAML)"}
          testId="advice-platform"
          onText={(platform_file) => change({ platform_file })}
        />
        <FileDrop
          label={request.trace ? `Jobs: ${request.trace_name}` : "Jobs (a trace, such as CSV)"}
          testId="advice-trace"
          onText={(trace, trace_name) => change({ trace, trace_name })}
        />
        <Field label="To be small" value={request.objective ?? ""} onChange={(objective) => change({ objective })} />
        <Field
          label="Minutes it may take"
          value={String(request.budget_minutes)}
          onChange={(text) => change({ budget_minutes: Number(text) || 1 })}
        />
        <Field
          label="Offered load (empty: that of the jobs)"
          value={request.load ? String(request.load) : ""}
          onChange={(text) => change({ load: Number(text) || null })}
        />
        <Field
          label="Jobs of each run, without a trace"
          value={String(request.tasks)}
          onChange={(text) => change({ tasks: Number(text) || 1000 })}
        />
      </div>
      <div className="p-1">
        <Button onClick={() => ask.mutate()} disabled={ask.isPending}>
          Ask
        </Button>
      </div>
    </Widget>
  );
}

function Field({ label, value, onChange }: { label: string; value: string; onChange: (text: string) => void }) {
  return (
    <label className="flex flex-col gap-1 text-xs text-muted">
      {label}
      <input
        className="h-8 rounded-lg border border-line bg-sunken px-2 text-ink"
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
    </label>
  );
}

interface FileDropProps {
  label: string;
  testId: string;
  onText: (text: string, name: string) => void;
}

function FileDrop({ label, testId, onText }: FileDropProps) {
  const id = useId();
  const read = async (file: File | undefined) => {
    if (file) onText(await file.text(), file.name);
  };
  return (
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
      <span role="status">{label}</span>
      <input id={id} type="file" className="sr-only" onChange={(event) => void read(event.target.files?.[0])} />
    </label>
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
    show: (row) => (row.state === "running" ? `${Math.round(100 * (row.share ?? 0))} %` : row.state),
  },
  {
    key: "answer",
    header: "Answer",
    value: (row) => row.headline || row.text || "",
    show: (row) =>
      row.state === "done" ? (
        <Link view="report" change={{ report: row.name }} className="text-accent hover:underline">
          {row.headline}
        </Link>
      ) : (
        <span className="text-muted">{row.text}</span>
      ),
  },
];
