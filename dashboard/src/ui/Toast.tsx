import { CircleAlert, CircleCheck, X } from "lucide-react";
import { useStore } from "zustand";
import { createStore } from "zustand/vanilla";

interface Toast {
  id: number;
  tone: "good" | "bad";
  message: string;
}

const MAX_TOASTS = 4;
const toasts = createStore<Toast[]>(() => []);
let lastId = 0;

/** A failure stays until it is closed; a success disappears by itself. */
export function toast(message: string, tone: Toast["tone"] = "good"): void {
  lastId += 1;
  const id = lastId;
  toasts.setState([...toasts.getState(), { id, tone, message }].slice(-MAX_TOASTS), true);
  if (tone === "good") setTimeout(() => close(id), 4_000);
}

function close(id: number): void {
  toasts.setState(
    toasts.getState().filter((each) => each.id !== id),
    true,
  );
}

export function Toasts() {
  const shown = useStore(toasts);
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
