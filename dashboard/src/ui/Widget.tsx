import { ChartNoAxesColumn, CircleAlert, GripVertical, Inbox, Table2 } from "lucide-react";
import { createContext, type KeyboardEvent, type ReactNode, type RefObject, useContext, useId, useRef } from "react";
import { useStore } from "zustand";
import { createStore } from "zustand/vanilla";
import type { Polled } from "../api/polling";
import { Badge } from "./Badge";
import { Button } from "./Button";
import { ExportMenu } from "./ExportMenu";

/** Moves or resizes a widget of the grid with the arrow keys. */
export type MoveByKey = (id: string, event: KeyboardEvent) => void;

export const MoveByKeyContext = createContext<MoveByKey | null>(null);

export interface WidgetHeading {
  id: string;
  title: string;
  /** One line: how to read it, and what a good value is. */
  caption: string;
}

export interface WidgetProps extends WidgetHeading {
  actions?: ReactNode;
  /** Where the data comes from: shows its loading, error and stale states. */
  source?: Polled<unknown>;
  loading?: boolean;
  /** Shown instead of the content when there is no data. */
  empty?: string | false | undefined;
  /** The same data as a table. */
  table?: ReactNode;
  /** For text, which may be longer than the widget; charts fill the widget. */
  scroll?: boolean;
  /** Off for forms. */
  exported?: boolean;
  /** The CSV of the chart, where its table says less than it shows. */
  csv?: () => string;
  /** Files to export besides what is shown. */
  files?: { label: string; href: string }[] | undefined;
  className?: string;
  children: ReactNode;
}

/** The widgets that are shown as a table: kept while the layout changes with the width of the window. */
const tables = createStore<ReadonlySet<string>>(() => new Set());

function toggleTable(id: string): void {
  const ids = new Set(tables.getState());
  if (!ids.delete(id)) ids.add(id);
  tables.setState(ids, true);
}

export function Widget(props: WidgetProps) {
  const { id, title, caption, actions, source, table, exported = true, csv, files, className = "" } = props;
  const content = useRef<HTMLDivElement>(null);
  const asTable = useStore(tables, (ids) => ids.has(id));
  const heading = useId();
  return (
    <section
      data-testid={`widget-${id}`}
      aria-labelledby={heading}
      className={`glass flex h-full min-h-0 flex-col rounded-[14px] [contain-intrinsic-size:auto_24rem] [content-visibility:auto] ${className}`}
    >
      <header className="px-4 pt-3 pb-2">
        <div className="flex min-h-8 flex-wrap items-center justify-end gap-x-1.5 gap-y-1">
          <MoveHandle id={id} title={title} />
          <h2 id={heading} className="min-w-0 grow basis-22 text-[0.9375rem] leading-5 font-semibold tracking-tight">
            {title}
          </h2>
          {source?.stale && (
            <Badge tone="warn" title={source.error?.message}>
              stale
            </Badge>
          )}
          {actions}
          <div className="flex items-center gap-1.5 empty:hidden">
            {table !== undefined && (
              <Button
                variant="ghost"
                className="-mr-1.5 size-8!"
                data-testid={`table-toggle-${id}`}
                aria-pressed={asTable}
                label={asTable ? "Show as chart" : "Show as table"}
                icon={
                  asTable ? (
                    <ChartNoAxesColumn aria-hidden className="size-4" />
                  ) : (
                    <Table2 aria-hidden className="size-4" />
                  )
                }
                onClick={() => toggleTable(id)}
              />
            )}
            {exported && (
              <ExportMenu
                id={id}
                title={title}
                content={content}
                table={table}
                csv={asTable ? undefined : csv}
                files={files}
              />
            )}
          </div>
        </div>
        <p className="line-clamp-2 text-xs text-muted" title={caption}>
          {caption}
        </p>
      </header>
      <Body {...props} asTable={asTable} content={content} />
    </section>
  );
}

function Body({
  title,
  source,
  loading,
  empty,
  table,
  scroll,
  children,
  asTable,
  content,
}: WidgetProps & { asTable: boolean; content: RefObject<HTMLDivElement | null> }) {
  if (source?.error && source.data === null) {
    return <Failure message={source.error.message} retry={source.refetch} />;
  }
  if (loading || source?.loading) return <Skeleton />;
  if (empty) return <Empty>{empty}</Empty>;
  if (asTable && table !== undefined)
    return (
      <Scroll content={content} label={title}>
        {table}
      </Scroll>
    );
  if (scroll)
    return (
      <Scroll content={content} label={title}>
        {children}
      </Scroll>
    );
  return (
    <div ref={content} className="min-h-0 flex-1 overflow-hidden px-3 pb-3">
      {children}
    </div>
  );
}

/** Can be focused and scrolled with the keyboard. */
function Scroll({
  label,
  content,
  children,
}: {
  label: string;
  content: RefObject<HTMLDivElement | null>;
  children: ReactNode;
}) {
  return (
    <div
      ref={content}
      tabIndex={0}
      role="group"
      aria-label={label}
      className="min-h-0 flex-1 scroll-py-1.5 overflow-auto rounded-lg px-3 pb-3 -outline-offset-2!"
    >
      {children}
    </div>
  );
}

function MoveHandle({ id, title }: { id: string; title: string }) {
  const moveByKey = useContext(MoveByKeyContext);
  if (!moveByKey) return null;
  return (
    <button
      type="button"
      className="widget-handle -ml-1.5 cursor-grab touch-none rounded text-faint hover:text-ink active:cursor-grabbing"
      aria-label={`Move ${title}: drag, or arrow keys; with Shift, resize`}
      title="Drag to move (arrow keys; Shift + arrow keys resize)"
      onKeyDown={(event) => moveByKey(id, event)}
    >
      <GripVertical aria-hidden className="size-4" />
    </button>
  );
}

export function Skeleton() {
  return (
    <div className="flex min-h-32 flex-1 flex-col gap-3 px-4 pt-2 pb-4" aria-busy="true">
      <span className="sr-only">Loading</span>
      <div className="skeleton h-3 w-3/5" />
      <div className="skeleton h-3 w-4/5" />
      <div className="skeleton min-h-10 flex-1" />
    </div>
  );
}

export function Empty({ children }: { children: ReactNode }) {
  return (
    <div className="flex min-h-32 flex-1 flex-col items-center justify-center gap-2 px-6 pb-6 text-center text-muted">
      <Inbox aria-hidden className="size-6 text-faint" />
      <div className="max-w-sm">{children}</div>
    </div>
  );
}

export function Failure({ message, retry }: { message: string; retry: () => void }) {
  return (
    <div className="flex min-h-32 flex-1 flex-col items-center justify-center gap-3 px-6 pb-6 text-center">
      <CircleAlert aria-hidden className="size-6 text-bad" />
      <p className="max-w-sm break-words text-muted">{message}</p>
      <Button onClick={retry}>Try again</Button>
    </div>
  );
}
