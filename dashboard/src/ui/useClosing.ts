import { type RefObject, useEffect, useRef } from "react";

/** Escape, a press and a focus outside of the box close it. Escape leaves the focus on the button that opened it. */
export function useClosing(open: boolean, box: RefObject<HTMLElement | null>, close: () => void): void {
  const latest = useRef(close);
  latest.current = close;
  useEffect(() => {
    if (!open) return;
    const onEvent = (event: Event) => {
      const escaped = event instanceof KeyboardEvent && event.key === "Escape";
      const outside = event.type !== "keydown" && !box.current?.contains(event.target as Node);
      if (escaped) box.current?.querySelector("button")?.focus();
      if (escaped || outside) latest.current();
    };
    const kinds = ["keydown", "pointerdown", "focusin"];
    for (const kind of kinds) document.addEventListener(kind, onEvent);
    return () => {
      for (const kind of kinds) document.removeEventListener(kind, onEvent);
    };
  }, [open, box]);
}
