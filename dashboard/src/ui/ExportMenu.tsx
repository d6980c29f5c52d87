import { Download } from "lucide-react";
import { type KeyboardEvent, type ReactNode, type RefObject, useRef, useState } from "react";
import { flushSync } from "react-dom";
import { usePalette } from "../theme";
import { Button } from "./Button";
import { download, downloadText, toCsv, toPng, toSvg } from "./exporting";
import { toast } from "./Toast";
import { useClosing } from "./useClosing";

export interface ExportMenuProps {
  id: string;
  title: string;
  /** The element with what the widget shows. */
  content: RefObject<HTMLElement | null>;
  /** The figures, where a chart is shown. */
  table?: ReactNode;
  /** The CSV of what is shown, where it is more than a table. */
  csv?: (() => string) | undefined;
  /** Further files: name and address. */
  files?: { label: string; href: string }[] | undefined;
}

/** PNG, SVG and CSV of any widget. */
export function ExportMenu({ id, title, content, table, csv: ownCsv, files = [] }: ExportMenuProps) {
  const [open, setOpen] = useState(false);
  const [hidden, setHidden] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const figures = useRef<HTMLDivElement>(null);
  const palette = usePalette();
  useClosing(open, box, () => setOpen(false));

  const picture = async (kind: "png" | "svg") => {
    if (!content.current) throw new Error("nothing is shown yet");
    if (kind === "svg") downloadText(`${id}.svg`, await toSvg(content.current, palette), "image/svg+xml");
    else download(`${id}.png`, await toPng(content.current, palette));
  };
  const tableCsv = () => {
    // The table of a chart is made for this moment.
    flushSync(() => setHidden(true));
    const shown = figures.current?.querySelector("table") ? figures.current : content.current;
    const text = shown ? toCsv(shown) : "";
    setHidden(false);
    return text;
  };
  const csv = () => {
    const text = ownCsv ? ownCsv() : tableCsv();
    if (!text) throw new Error("nothing is shown yet");
    downloadText(`${id}.csv`, text, "text/csv");
  };
  const choose = (action: () => void | Promise<void>) => () => {
    setOpen(false);
    box.current?.querySelector("button")?.focus();
    const fail = (error: unknown) =>
      toast(`Could not export: ${error instanceof Error ? error.message : error}`, "bad");
    Promise.resolve().then(action).catch(fail);
  };
  const item = "block w-full rounded-md px-3 py-1.5 text-left text-xs whitespace-nowrap hover:bg-sunken";
  return (
    <div ref={box} className="relative -mr-1.5">
      <Button
        variant="ghost"
        className="size-8!"
        data-testid={`export-${id}`}
        aria-haspopup="menu"
        aria-expanded={open}
        label={`Export ${title}`}
        icon={<Download aria-hidden className="size-4" />}
        onClick={() => setOpen(!open)}
      />
      {open && (
        <div
          role="menu"
          tabIndex={-1}
          aria-label={`Export ${title}`}
          onKeyDown={moveFocus}
          className="absolute right-0 z-10 mt-1 rounded-lg border border-line-strong bg-raised p-1 shadow-lg"
        >
          <button type="button" role="menuitem" className={item} onClick={choose(() => picture("png"))} autoFocus>
            PNG picture
          </button>
          <button type="button" role="menuitem" className={item} onClick={choose(() => picture("svg"))}>
            SVG drawing
          </button>
          <button type="button" role="menuitem" className={item} onClick={choose(csv)}>
            CSV of what is shown
          </button>
          {files.map(({ label, href }) => (
            <a key={href} role="menuitem" className={item} href={href} download onClick={() => setOpen(false)}>
              {label}
            </a>
          ))}
        </div>
      )}
      {hidden && (
        <div ref={figures} hidden>
          {table}
        </div>
      )}
    </div>
  );
}

const STEPS: Record<string, number> = { ArrowDown: 1, ArrowUp: -1 };

/** The arrow keys, Home and End go through the entries. */
function moveFocus(event: KeyboardEvent<HTMLElement>): void {
  const entries = [...event.currentTarget.querySelectorAll<HTMLElement>("button, a")];
  const at = entries.indexOf(document.activeElement as HTMLElement);
  const step = STEPS[event.key];
  const next = step ? (at + step + entries.length) % entries.length : { Home: 0, End: entries.length - 1 }[event.key];
  if (next === undefined) return;
  event.preventDefault();
  entries[next]?.focus();
}
