import type { ReactNode } from "react";
import { useRunPolled } from "../api/runs";
import type { RunDetail } from "../api/types";
import { count, number, percent, perSecond } from "../format";
import { useLive } from "../live";
import { Badge, Term } from "../ui";
import { clusterText } from "../views/newrun/summary";
import { describeObjective, describeWeights, useWeights } from "../weights";
import { driftText, isTrace, workloadText } from "../workload";

/** What the run on the screen is: its cluster, workload, load, seed and what is ranked by. */
export function RunFacts() {
  const spec = useLive((live) => live.spec);
  const { data } = useRunPolled<RunDetail>("");
  const [weights] = useWeights();
  if (!spec) return null;
  const objective = describeObjective(spec.objective);
  return (
    <dl
      aria-label="What this run is"
      data-testid="run-facts"
      className="mb-3 flex flex-wrap items-baseline gap-x-6 gap-y-1.5 px-1 text-[0.8125rem]"
    >
      <Fact name="Cluster">{clusterText(spec.cluster)}</Fact>
      <Fact name="Workload" title={driftText(spec) || undefined}>
        {workloadText(spec)}
        {!isTrace(spec) && <span className="text-muted"> · {perSecond(spec.workload.arrival_rate)} simulated</span>}
      </Fact>
      <Fact name={<Term name="load">Load</Term>}>
        <Load data={data} />
      </Fact>
      <Fact name="Length">{spec.tasks === null ? (isTrace(spec) ? "the trace" : "endless") : count(spec.tasks)}</Fact>
      <Fact name="Seed">{spec.seed}</Fact>
      <Fact name={<Term name="certificate">Certificate</Term>}>
        <CertificateText spec={spec} />
      </Fact>
      <Fact name="Ranked by">{describeWeights(weights)}</Fact>
      {objective !== "turnaround" && <Fact name="Learners minimise">{objective}</Fact>}
      {(data?.tags ?? []).map((tag) => (
        <Badge key={tag}>{tag}</Badge>
      ))}
    </dl>
  );
}

function Fact({ name, title, children }: { name: ReactNode; title?: string | undefined; children: ReactNode }) {
  return (
    <div className="flex items-baseline gap-1.5" title={title}>
      <dt className="text-xs text-muted">{name}</dt>
      <dd className="num font-medium">{children}</dd>
    </div>
  );
}

/** How far simulations of this platform were from real runs; a real run needs none. */
function CertificateText({ spec }: { spec: RunDetail["spec"] }) {
  if (spec.execution.mode === "real") return "a real run";
  const certificate = spec.certificate;
  if (!certificate) return <span className="text-muted">none</span>;
  return (
    <span data-field="certificate" data-value={certificate.platform_hash}>
      makespan ±{percent(certificate.makespan.median, 1)}, turnaround ±{percent(certificate.turnaround.median, 1)}
      <span className="text-muted">
        {" "}
        · order kept in {certificate.pairs_kept} of {certificate.pairs}
      </span>
    </span>
  );
}

function Load({ data }: { data: RunDetail | null }) {
  if (!data) return "–";
  if (data.load === null) {
    return <span className="text-muted">{isTrace(data.spec) ? "known at the end" : "all tasks arrive at once"}</span>;
  }
  const tone = data.load >= 1 ? "text-bad" : data.load >= 0.8 ? "text-warn" : "";
  return (
    <span className={tone} data-field="load" data-value={data.load}>
      {number(data.load, 2)}
      {data.load >= 1 && " (queues grow)"}
    </span>
  );
}
