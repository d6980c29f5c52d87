import { useMutation } from "@tanstack/react-query";
import { RotateCcw, TriangleAlert, UserX } from "lucide-react";
import { post, runPath } from "../api/client";
import { toastFailure } from "../api/polling";
import { isActive } from "../api/runs";
import type { Run } from "../api/types";
import { dateTime } from "../format";
import { useLive, useRun } from "../live";
import { labelOf } from "../schedulers";
import { Button } from "../ui/Button";
import { Link } from "../ui/Link";
import { toast } from "../ui/Toast";

type Action = "retry" | "leave-out";

/** Why a scheduler is suspended, and what can be done about it; nothing if it is not. */
export function SuspendedNotice({ name, link = false }: { name: string; link?: boolean }) {
  const run = useRun();
  const suspension = useLive((live) => live.suspended[name]);
  const active = useLive((live) => isActive(live.state));
  const { mutate, isPending } = useMutation({
    mutationFn: (action: Action) => post<Run>(runPath(run ?? "", `/schedulers/${encodeURIComponent(name)}/${action}`)),
    onSuccess: (_, action) =>
      toast(
        action === "retry" ? `${labelOf(name)} is tried again` : `${labelOf(name)} is left out of this run`,
        "good",
      ),
    onError: (error, action) =>
      toastFailure(action === "retry" ? `Could not retry ${name}` : `Could not leave ${name} out`, error),
  });
  if (!suspension) return null;
  const { batch, reason, at, left_out } = suspension;
  return (
    <section
      role="alert"
      data-testid="suspended"
      data-scheduler={name}
      className="mb-3.5 flex flex-wrap items-center gap-x-4 gap-y-2 rounded-xl border border-bad/40 bg-bad/10 px-4 py-3 text-[0.8125rem]"
    >
      <TriangleAlert aria-hidden className="size-5 shrink-0 text-bad" />
      <div className="min-w-0 flex-1 basis-72">
        <p>
          <strong className="font-semibold">
            {labelOf(name)}{" "}
            {left_out ? "was left out of this run" : active ? "is suspended in this run" : "took no part to the end"}:
          </strong>{" "}
          it kept failing{batch === null ? "" : ` on batch ${batch}`} ({dateTime(at)}). The others are compared without
          it.
        </p>
        <p className="mt-1 font-mono text-xs break-words text-muted">{reason}</p>
        {active && !left_out && !link && (
          <p className="mt-1 text-muted">
            After a fix, retry: a policy of a file is loaded again, and it continues with batch {batch ?? 0}.
          </p>
        )}
      </div>
      <div className="flex flex-wrap items-center gap-2">
        {link && (
          <Link view="scheduler" change={{ scheduler: name }} className="px-2 text-accent hover:underline">
            Details
          </Link>
        )}
        {active && !left_out && (
          <>
            <Button
              data-testid="retry"
              disabled={isPending}
              icon={<RotateCcw aria-hidden className="size-4" />}
              onClick={() => mutate("retry")}
            >
              Retry
            </Button>
            <Button
              data-testid="leave-out"
              disabled={isPending}
              icon={<UserX aria-hidden className="size-4" />}
              title="For good: this run ends without it"
              onClick={() => mutate("leave-out")}
            >
              Leave out
            </Button>
          </>
        )}
      </div>
    </section>
  );
}
