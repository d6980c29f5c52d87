import { useMutation } from "@tanstack/react-query";
import { put, runPath } from "../api/client";
import { queryClient, toastFailure } from "../api/polling";
import { isActive, useRunPolled } from "../api/runs";
import type { Objective, Run, RunDetail } from "../api/types";
import { toast } from "../ui";
import { describeObjective, objectiveOf, useWeights } from "../weights";

/** They learn something else: the Oracle's share, and time and energy by `learning.energy_weight`. */
const WITHOUT_OBJECTIVE = ["hybrid_ml", "rl_agent"];

type Learning = Pick<Run, "state" | "lockstep" | "learning_schedulers">;

/** The schedulers that minimise the run's objective. */
export function followers({ learning_schedulers }: Pick<Run, "learning_schedulers">): string[] {
  return learning_schedulers.filter((name) => !WITHOUT_OBJECTIVE.includes(name));
}

/** Why the weights cannot be sent to the learners; null: they can. */
export function obstacle(run: Learning, wanted: Objective | null, current: Objective): string | null {
  if (!isActive(run.state)) return "The run is over: its learners learn no more.";
  if (run.lockstep) {
    return "The run learns in lockstep, where results follow from its spec. Start one with learning.sync: free.";
  }
  if (!wanted) return "Turnaround or execution needs a weight above 0, or tasks might wait for ever.";
  if (describeObjective(wanted) === describeObjective(current)) return "The learners already minimise this.";
  return null;
}

/** What the learners of the run minimise, and a button that lets them follow the weights. */
export function LearnersObjective() {
  const source = useRunPolled<RunDetail>("", {}, 5_000);
  const [weights] = useWeights();
  const run = source.data;
  const { mutate, isPending } = useMutation({
    mutationFn: ({ run, objective }: { run: string; objective: Objective }) =>
      put<Run>(runPath(run, "/objective"), objective),
    onSuccess: (answer) => {
      toast(`The learners now minimise ${describeObjective(answer.spec.objective)}.`);
      void queryClient.invalidateQueries({ queryKey: [runPath(answer.run)] });
    },
    onError: (error) => toastFailure("Could not change what the learners minimise", error),
  });
  if (!run || followers(run).length === 0) return null;
  const objective = objectiveOf(weights);
  const reason = obstacle(run, objective, run.spec.objective);
  return (
    <div className="mt-2 flex flex-wrap items-center justify-between gap-x-3 gap-y-1 text-xs text-muted">
      <span data-testid="objective">
        Learners minimise <b className="font-medium text-ink">{describeObjective(run.spec.objective)}</b>
      </span>
      {/* Not `disabled`: the keyboard has to reach the reason. */}
      <button
        type="button"
        data-testid="follow-weights"
        aria-disabled={reason !== null || isPending}
        title={reason ?? `Let ${followers(run).join(", ")} minimise ${objective ? describeObjective(objective) : ""}`}
        onClick={() => {
          if (objective && reason === null && !isPending) mutate({ run: run.run, objective });
        }}
        className="rounded-lg border border-line bg-sunken px-2 py-1 text-ink hover:border-line-strong hover:bg-raised aria-disabled:cursor-not-allowed aria-disabled:opacity-60"
      >
        Let the learners follow
      </button>
    </div>
  );
}
