import { CircleAlert, CircleCheck, X } from "lucide-react";
import { createStore, useSelected } from "../store";

interface Toast {
  id: number;
  tone: "good" | "bad";
  message: string;
}

const MAX_TOASTS = 4;
const toasts = createStore<Toast[]>([]);
let lastId = 0;

/** Bad news stays until it is closed; good news leaves by itself. */
export function toast(message: string, tone: Toast["tone"] = "good"): void {
  const id = (lastId += 1);
  toasts.set([...toasts.get(), { id, tone, message }].slice(-MAX_TOASTS));
  if (tone === "good") setTimeout(() => close(id), 4_000);
}

function close(id: number): void {
  toasts.set(toasts.get().filter((each) => each.id !== id));
}

export function Toasts() {
  const shown = useSelected(toasts, (all) => all);
  return (
    <div
      role="status"
      aria-live="polite"
      className="pointer-events-none fixed inset-x-4 bottom-20 z-50 flex flex-col items-end gap-2 sm:bottom-6"
    >
      {shown.map(({ id, tone, message }) => (
        <div
          key={id}
          data-testid="toast"
          className="glass pointer-events-auto flex max-w-md items-start gap-3 rounded-xl bg-raised px-4 py-3"
        >
          {tone === "good" ? (
            <CircleCheck aria-hidden className="mt-0.5 size-4 shrink-0 text-good" />
          ) : (
            <CircleAlert aria-hidden className="mt-0.5 size-4 shrink-0 text-bad" />
          )}
          <p className="min-w-0 break-words">{message}</p>
          <button type="button" aria-label="Close" className="text-faint hover:text-ink" onClick={() => close(id)}>
            <X aria-hidden className="size-4" />
          </button>
        </div>
      ))}
    </div>
  );
}
