import { type ReactNode, useId, useRef } from "react";
import { GLOSSARY, type TermName } from "../glossary";

/** A word with its meaning behind it: hover, focus or press it. */
export function Term({ name, children }: { name: TermName; children?: ReactNode }) {
  const id = useId();
  const text = useRef<HTMLSpanElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const { title, meaning } = GLOSSARY[name];
  const show = () => {
    if (!text.current || !button.current) return;
    text.current.showPopover();
    const at = button.current.getBoundingClientRect();
    const left = Math.max(8, Math.min(at.left, window.innerWidth - text.current.offsetWidth - 8));
    const below = at.bottom + 6;
    const fits = below + text.current.offsetHeight < window.innerHeight;
    text.current.style.left = `${left}px`;
    text.current.style.top = `${fits ? below : at.top - text.current.offsetHeight - 6}px`;
  };
  const hide = () => text.current?.matches(":popover-open") && text.current.hidePopover();
  return (
    <>
      <button
        ref={button}
        type="button"
        data-term={name}
        aria-describedby={id}
        className="cursor-help underline decoration-faint decoration-dotted underline-offset-2"
        onPointerEnter={show}
        onPointerLeave={hide}
        onFocus={show}
        onBlur={hide}
        onClick={show}
        onKeyDown={(event) => event.key === "Escape" && hide()}
      >
        {children ?? title}
      </button>
      <span
        ref={text}
        id={id}
        popover="manual"
        role="tooltip"
        className="fixed m-0 w-72 max-w-[calc(100vw-1rem)] rounded-lg border border-line-strong bg-raised p-3 text-xs leading-5 font-normal whitespace-normal text-ink shadow-lg"
      >
        <b className="block">{title}</b>
        {meaning}
      </span>
    </>
  );
}
