/** The form's texts as a request for advice. The gateway says what is wrong with them. */

export type Answers = Record<string, string>;

interface Field {
  /** In the request, and in the gateway's problems. */
  path: string;
  label: string;
  hint: string;
  /** What an empty field means. */
  placeholder: string;
  /** Only of jobs that are generated. */
  generated?: boolean;
  text?: boolean;
}

export const FIELDS: readonly Field[] = [
  { path: "objective.turnaround", label: "Weight of turnaround", hint: "what to minimise", placeholder: "1" },
  { path: "objective.energy", label: "Weight of energy", hint: "1: as much as turnaround", placeholder: "0" },
  { path: "objective.cost", label: "Weight of money", hint: "1: as much as turnaround", placeholder: "0" },
  { path: "budget_minutes", label: "Minutes it may take", hint: "more can tell smaller differences", placeholder: "5" },
  { path: "load", label: "Offered load", hint: "1: as much as the machines can do", placeholder: "that of the jobs" },
  { path: "preset", label: "Kind of jobs", hint: "a workload preset", placeholder: "hpc", generated: true, text: true },
  { path: "tasks", label: "Jobs of each run", hint: "", placeholder: "1000", generated: true },
  {
    path: "schedulers",
    label: "Schedulers",
    hint: "separated by commas",
    placeholder: "all that are deployed",
    text: true,
  },
];

/** What was left empty is left out. A text that is no number stays one, for the gateway to refuse. */
export function requestOf(
  answers: Answers,
  platformFile: string | undefined,
  jobs: { name: string; text: string } | null,
): Record<string, unknown> {
  const request: Record<string, unknown> = {};
  const objective: Record<string, unknown> = {};
  for (const { path, generated, text } of FIELDS) {
    const given = (answers[path] ?? "").trim();
    if (!given || (generated && jobs)) continue;
    const [first, second] = path.split(".");
    const value = text || Number.isNaN(Number(given)) ? given : Number(given);
    if (second) objective[second] = value;
    else if (path === "schedulers") request[path] = given.split(",").map((name) => name.trim());
    else if (first) request[first] = value;
  }
  if (Object.keys(objective).length) request.objective = objective;
  if (platformFile) request.platform_file = platformFile;
  if (jobs) {
    request.trace = jobs.text;
    request.trace_name = jobs.name;
  }
  return request;
}
