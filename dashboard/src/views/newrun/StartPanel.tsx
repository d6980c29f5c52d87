import { Play, RotateCcw } from "lucide-react";
import { useEffect } from "react";
import { Badge, Button, Widget } from "../../ui";
import { summary } from "./summary";
import type { DraftCheck } from "./useSpecCheck";

export function StartPanel({
  check,
  invalid,
  others,
  blocked,
  starting,
  onStart,
  onReset,
}: {
  check: DraftCheck;
  /** Fields of the form with a problem. */
  invalid: number;
  /** Problems of fields that the form does not have. */
  others: string[];
  blocked: boolean;
  starting: boolean;
  onStart: () => void;
  onReset: () => void;
}) {
  // When the check failed, starting may still work; if not, the gateway gives the reason.
  const ready = !blocked && !starting && ((check.current && check.ok) || check.failure !== null);
  useShortcut(onStart, ready);
  return (
    <Widget
      exported={false}
      id="new-start"
      title="Start"
      caption="The gateway checks the spec as you type."
      actions={<CheckResult check={check} blocked={blocked} />}
      scroll
    >
      <div className="flex flex-col gap-4 px-1">
        {check.complete && check.problems.length === 0 && !blocked && (
          <p className="text-muted">{summary(check.complete)}</p>
        )}
        {invalid > 0 && (
          <p className="text-bad">
            {invalid === 1 ? "1 field is" : `${invalid} fields are`} invalid: see the red text.
          </p>
        )}
        {others.length > 0 && (
          <ul className="flex list-disc flex-col gap-1 pl-4 text-xs text-bad" data-testid="spec-problems">
            {others.map((problem) => (
              <li key={problem} className="break-words">
                {problem}
              </li>
            ))}
          </ul>
        )}
        {check.failure && <p className="text-xs text-warn">The check failed: {check.failure}</p>}
        <div className="flex flex-wrap items-center gap-2">
          <Button
            variant="primary"
            data-testid="start-run"
            disabled={!ready}
            aria-keyshortcuts="Control+Enter Meta+Enter"
            icon={<Play aria-hidden className="size-4" />}
            onClick={onStart}
          >
            {starting ? "Starting…" : "Start the run"}
          </Button>
          <Button variant="ghost" icon={<RotateCcw aria-hidden className="size-4" />} onClick={onReset}>
            Reset
          </Button>
          <span className="text-xs text-muted max-sm:hidden">
            <kbd>Ctrl</kbd> + <kbd>Enter</kbd> starts it from any field
          </span>
        </div>
      </div>
    </Widget>
  );
}

/** Ctrl or Cmd with Enter, wherever the focus is: Start is behind all fields. */
function useShortcut(start: () => void, ready: boolean): void {
  useEffect(() => {
    const onKey = (event: globalThis.KeyboardEvent) => {
      if (ready && event.key === "Enter" && (event.ctrlKey || event.metaKey)) start();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  });
}

function CheckResult({ check, blocked }: { check: DraftCheck; blocked: boolean }) {
  const [tone, text] = resultOf(check, blocked);
  return (
    <span role="status" data-testid="spec-check">
      <Badge tone={tone}>{text}</Badge>
    </span>
  );
}

function resultOf(check: DraftCheck, blocked: boolean): ["good" | "bad" | "warn" | "neutral", string] {
  if (blocked) return ["bad", "not JSON"];
  if (!check.current) return ["neutral", "checking…"];
  if (check.failure) return ["warn", "not checked"];
  if (check.ok) return ["good", "ready"];
  return ["bad", check.problems.length === 1 ? "1 problem" : `${check.problems.length} problems`];
}
