import { Copy } from "lucide-react";
import { useRef } from "react";
import { Button, toast, Widget } from "../../ui";

/** The draft as text. Valid JSON becomes the draft at once. */
export function SpecJson({
  text,
  problem,
  onText,
  onLeave,
}: {
  text: string;
  problem: string | null;
  onText: (text: string) => void;
  onLeave: () => void;
}) {
  const box = useRef<HTMLTextAreaElement>(null);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      toast("Copied");
    } catch {
      // Without TLS the browser has no clipboard.
      box.current?.select();
      toast("Selected. Copy it with the keyboard.");
    }
  };
  return (
    <Widget
      exported={false}
      id="new-json"
      title="Spec as JSON"
      caption="Your settings; you can add any other field of a run spec. For the command line: hybrid run start --spec."
      actions={
        <Button
          variant="ghost"
          className="size-8!"
          label="Copy"
          icon={<Copy aria-hidden className="size-4" />}
          onClick={() => void copy()}
        />
      }
    >
      <textarea
        ref={box}
        data-testid="spec-json"
        aria-label="Run spec as JSON"
        aria-invalid={problem !== null}
        aria-describedby={problem === null ? undefined : "spec-json-problem"}
        spellCheck={false}
        rows={Math.min(24, Math.max(8, text.split("\n").length + 1))}
        className={`w-full resize-y rounded-lg border bg-sunken p-3 font-mono text-xs leading-5 ${problem === null ? "border-line" : "border-bad"}`}
        value={text}
        onChange={(event) => onText(event.target.value)}
        onBlur={onLeave}
      />
      {problem !== null && (
        <p id="spec-json-problem" className="pt-1 text-xs break-words text-bad">
          {problem}
        </p>
      )}
    </Widget>
  );
}
