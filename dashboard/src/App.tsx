import { Suspense, useEffect } from "react";
import { useRuns } from "./api/runs";
import { feed, useLink, useLive, useRun } from "./live";
import { ErrorBoundary } from "./shell/ErrorBoundary";
import { Header } from "./shell/Header";
import { Navigation } from "./shell/Navigation";
import { RunNotices } from "./shell/RunNotices";
import { Tour } from "./shell/Tour";
import { Button } from "./ui/Button";
import { Toasts } from "./ui/Toast";
import { Empty, Skeleton } from "./ui/Widget";
import { DEFAULT_VIEW, openView, setParameters, useParameter } from "./url";
import { VIEWS } from "./views";
import { useSentWeights } from "./weights";

export function App() {
  const selected = useParameter("view") ?? DEFAULT_VIEW;
  const view = VIEWS[selected] ? selected : DEFAULT_VIEW;
  useWatchedRun();
  useSentWeights();
  useTitle(VIEWS[view]?.title ?? "");
  return (
    <div className="min-h-dvh md:grid md:grid-cols-[5.25rem_1fr]">
      <a
        href="#content"
        className="sr-only z-50 rounded-lg bg-accent px-4 py-2 text-on-accent focus:not-sr-only focus:fixed focus:top-2 focus:left-2"
      >
        Skip to content
      </a>
      <aside className="md:sticky md:top-0 md:flex md:h-dvh md:flex-col md:border-r md:border-line md:bg-sunken">
        <img src="/icon.svg" alt="" className="mx-auto mt-3 mb-4 hidden size-9 md:block" />
        <Navigation view={view} />
      </aside>
      <div className="min-w-0 pb-20 md:pb-6">
        <Header />
        <main id="content" tabIndex={-1} className="px-3 pt-3 outline-none md:px-5 md:pt-4">
          <ErrorBoundary key={view}>
            <Suspense fallback={<Opening />}>
              <Content view={view} />
            </Suspense>
          </ErrorBoundary>
        </main>
      </div>
      <Toasts />
      <Tour />
    </div>
  );
}

function Content({ view }: { view: string }) {
  const run = useRun();
  const selected = useParameter("run");
  const unknown = useLink((link) => link.unknownRun);
  const View = VIEWS[view]?.component;
  if (!View) return null;
  if (!VIEWS[view]?.needsRun) return <View />;
  if (unknown && selected) return <UnknownRun run={selected} />;
  if (unknown && !run) return <NoRun />;
  if (!run) return <Connecting />;
  return (
    <>
      {view !== "scheduler" && <RunNotices />}
      <View key={run} />
    </>
  );
}

/** The run in the address; without one the newest, also after a newer one starts. */
function useWatchedRun(): void {
  const selected = useParameter("run");
  const runs = useRuns();
  const newest = runs.data?.[0]?.run ?? null;
  const known = !runs.loading;
  useEffect(() => {
    if (selected || known) feed.watch(selected ?? newest);
  }, [selected, newest, known]);
}

function useTitle(title: string): void {
  const state = useLive((live) => live.state);
  useEffect(() => {
    document.title = `${title}${state ? ` · ${state}` : ""} · Hybrid ML Scheduler`;
  }, [title, state]);
}

function Connecting() {
  const problem = useLive((live) => live.problem);
  const connection = useLink((link) => link.connection);
  const unreachable = connection === "offline" || connection === "reconnecting";
  return (
    <div className="mt-24">
      <Empty>{unreachable ? "The gateway does not answer. Retrying." : (problem ?? "Connecting…")}</Empty>
    </div>
  );
}

/** While the code of a view is loaded. */
function Opening() {
  const connection = useLink((link) => link.connection);
  if (connection !== "offline" && connection !== "reconnecting") return <Skeleton />;
  return (
    <div className="mt-24">
      <Empty>The gateway does not answer. The view opens when it does.</Empty>
    </div>
  );
}

function UnknownRun({ run }: { run: string }) {
  return (
    <div className="mt-24">
      <Empty>
        <p className="mb-4">Run {run} does not exist.</p>
        <Button variant="primary" onClick={() => setParameters({ run: null }, false)}>
          Show the newest run
        </Button>
      </Empty>
    </div>
  );
}

function NoRun() {
  return (
    <div className="mt-24">
      <Empty>
        <p className="mb-4">No run yet.</p>
        <Button variant="primary" onClick={() => openView("new")}>
          New run
        </Button>
      </Empty>
    </div>
  );
}
