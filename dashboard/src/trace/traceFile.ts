/** A trace that is dropped into the page: CSV with the columns of tasks, sent to a run of its own. */
import { path, post, postText, runPath } from "../api/client";
import type { BulkAccepted, Run } from "../api/types";
import { type Draft, withValue } from "../views/newrun/draft";

export const REQUIRED = ["size", "compute_intensity", "memory_required", "arrival_time"] as const;
/** Lines of one request: below the gateway's limits of rows and bytes. */
const PART = 20_000;
const PATIENCE_MS = 1_000;

export interface TraceFile {
  name: string;
  header: string;
  lines: string[];
}

/** The lines of a file, in the order of arrival; throws with what is missing. */
export function readTrace(name: string, text: string): TraceFile {
  const [header = "", ...lines] = text.split(/\r?\n/).filter((line) => line.trim() !== "");
  const columns = header.split(",").map((column) => column.trim());
  const missing = REQUIRED.filter((column) => !columns.includes(column));
  if (missing.length) {
    throw new Error(
      `${name} has no column ${missing.join(", ")}. The page takes CSV with the columns of tasks; for other formats: hybrid trace convert`,
    );
  }
  if (lines.length === 0) throw new Error(`${name} has no tasks`);
  return { name, header: columns.join(","), lines: withRowNumbers(columns, lines) };
}

/** Dependencies are by `task_id` where a file has that column; the gateway counts its rows. */
function withRowNumbers(columns: string[], lines: string[]): string[] {
  const [id, parents] = [columns.indexOf("task_id"), columns.indexOf("dependencies")];
  if (id < 0 || parents < 0) return lines;
  const cells = lines.map((line) => line.split(","));
  const row = new Map(cells.map((each, at) => [each[id]?.trim(), at]));
  return cells.map((each) => {
    const ids = (each[parents] ?? "").split(";").filter(Boolean);
    const numbers = ids.map((parent) => row.get(parent.trim()) ?? parent).join(";");
    return each.map((cell, at) => (at === parents ? numbers : cell)).join(",");
  });
}

/** The draft as the spec of a run that takes the trace. */
export function traceDraft(draft: Draft, trace: TraceFile): Draft {
  const named = withValue(withValue(draft, "tasks", undefined), "name", trace.name.slice(0, 80));
  return withValue(withValue(named, "pace", "max"), "workload.source", "submitted");
}

/** Sends all tasks; a part that the run has no room for is sent again. */
export async function sendTrace(run: Run, trace: TraceFile, onSent: (tasks: number) => void): Promise<void> {
  let first = 0;
  while (first < trace.lines.length) {
    const part = trace.lines.slice(first, first + PART);
    const last = first + part.length === trace.lines.length;
    const body = [trace.header, ...part].join("\n");
    const answer = await postText<BulkAccepted>(runPath(run.run, "/tasks", { first, last: String(last) }), body);
    if (answer === null) await new Promise((done) => setTimeout(done, PATIENCE_MS));
    else first = answer.next_task;
    onSent(first);
  }
}

export function startTrace(draft: Draft, trace: TraceFile): Promise<Run> {
  return post<Run>("/api/runs", traceDraft(draft, trace));
}

export function stopRun(run: string, keepalive = false): Promise<Run> {
  return post<Run>(path("/api/simulation/stop", { run }), undefined, { keepalive });
}
