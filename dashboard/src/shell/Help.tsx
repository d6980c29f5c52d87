import { CircleHelp } from "lucide-react";
import { useRef } from "react";
import { GLOSSARY } from "../glossary";
import { Button } from "../ui/Button";
import { Link } from "../ui/Link";
import { openTour } from "./Tour";

const PAGES = [
  { page: "guide.md", label: "Guide" },
  { page: "schedulers.md", label: "Schedulers" },
  { page: "traces.md", label: "Traces" },
  { page: "lab.md", label: "Experiments" },
];

/** The glossary, the guide and the tour. */
export function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  return (
    <>
      <Button
        data-testid="help"
        variant="ghost"
        label="Help"
        icon={<CircleHelp aria-hidden className="size-4.5" />}
        onClick={() => dialog.current?.showModal()}
      />
      <dialog
        ref={dialog}
        aria-labelledby="help-title"
        data-testid="help-dialog"
        className="m-auto max-h-[80dvh] w-[36rem] max-w-[calc(100vw-2rem)] rounded-2xl border border-line-strong bg-raised p-6 text-ink backdrop:bg-black/50"
      >
        <div className="flex items-center justify-between gap-4">
          <h2 id="help-title" className="text-lg font-semibold tracking-tight">
            Help
          </h2>
          <Button autoFocus onClick={() => dialog.current?.close()}>
            Close
          </Button>
        </div>
        <p className="mt-3 flex flex-wrap gap-x-4 gap-y-1">
          {PAGES.map(({ page, label }) => (
            <Link
              key={page}
              view="guide"
              change={{ page }}
              className="text-accent underline"
              onClick={() => dialog.current?.close()}
            >
              {label}
            </Link>
          ))}
          <a className="text-accent underline" href="/docs" target="_blank" rel="noreferrer">
            HTTP interface
          </a>
          <button
            type="button"
            className="text-accent underline"
            onClick={() => {
              dialog.current?.close();
              openTour();
            }}
          >
            Show the tour
          </button>
        </p>
        <h3 className="mt-5 font-semibold">Words</h3>
        <dl className="mt-2 flex flex-col gap-2 text-[0.8125rem]">
          {Object.entries(GLOSSARY).map(([name, { title, meaning }]) => (
            <div key={name}>
              <dt className="font-medium">{title}</dt>
              <dd className="text-muted">{meaning}</dd>
            </div>
          ))}
        </dl>
      </dialog>
    </>
  );
}
