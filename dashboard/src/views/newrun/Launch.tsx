import { Play, RotateCcw } from "lucide-react";
import { Badge, Button, Widget } from "../../ui";
import { summary } from "./summary";
import type { Check } from "./useCheck";

export function Launch({ check, others, blocked, starting, onStart, onReset }: {
  check: Check;
  /** Problems that no field of the form shows. */
  others: string[];
  blocked: boolean;
  starting: boolean;
  onStart: () => void;
  onReset: () => void;
}) {
  const wrong = check.problems.length;
  // When the gateway cannot check, it may still be able to start, and says why if not.
  const ready = !blocked && ((check.current && check.ok) || check.failure !== null);
  return (
    <Widget
      id="new-start"
      title="Start"
      hint="The gateway checks the spec as you type; nothing starts before you say so."
      actions={<Verdict check={check} blocked={blocked} />}
      scroll
    >
      <div className="flex flex-col gap-4 px-1">
        {check.filled && wrong === 0 && !blocked && <p className="text-muted">{summary(check.filled)}</p>}
        {wrong > others.length && <p className="text-bad">{wrong - others.length === 1 ? "One field needs" : `${wrong - others.length} fields need`} another value: see the red {wrong - others.length === 1 ? "note" : "notes"}.</p>}
        {others.length > 0 && (
          <ul className="flex list-disc flex-col gap-1 pl-4 text-xs text-bad" data-testid="spec-problems">
            {others.map((problem) => (
              <li key={problem} className="break-words">
                {problem}
              </li>
            ))}
          </ul>
        )}
        {check.failure && <p className="text-xs text-warn">It could not be checked: {check.failure}</p>}
        <div className="flex gap-2">
          <Button look="primary" data-testid="start-run" disabled={!ready || starting} icon={<Play aria-hidden className="size-4" />} onClick={onStart}>
            {starting ? "Starting…" : "Start the run"}
          </Button>
          <Button look="ghost" icon={<RotateCcw aria-hidden className="size-4" />} onClick={onReset}>
            Reset
          </Button>
        </div>
      </div>
    </Widget>
  );
}

function Verdict({ check, blocked }: { check: Check; blocked: boolean }) {
  const [tone, word] = verdictOf(check, blocked);
  return (
    <span role="status" data-testid="spec-verdict">
      <Badge tone={tone}>{word}</Badge>
    </span>
  );
}

function verdictOf(check: Check, blocked: boolean): ["good" | "bad" | "warn" | "neutral", string] {
  if (blocked) return ["bad", "not JSON"];
  if (!check.current) return ["neutral", "checking…"];
  if (check.failure) return ["warn", "unchecked"];
  if (check.ok) return ["good", "ready"];
  return ["bad", check.problems.length === 1 ? "1 problem" : `${check.problems.length} problems`];
}
