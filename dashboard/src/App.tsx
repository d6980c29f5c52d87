import { Suspense, useEffect } from "react";
import { isActive, useRuns } from "./api/runs";
import { feed, useLink, useLive, useRun } from "./live";
import { Fault } from "./shell/Fault";
import { Header } from "./shell/Header";
import { Navigation } from "./shell/Navigation";
import { Button } from "./ui/Button";
import { Toasts } from "./ui/Toast";
import { Empty, Skeleton } from "./ui/Widget";
import { DEFAULT_VIEW, openView, setParameters, useParameter } from "./url";
import { VIEWS } from "./views";
import { useSentWeights } from "./weights";

/** These are about more than one run, or none, and work without one. */
const WITHOUT_RUN = ["new", "history", "log", "compare"];

export function App() {
  const asked = useParameter("view") ?? DEFAULT_VIEW;
  const view = VIEWS[asked] ? asked : DEFAULT_VIEW;
  useWatchedRun();
  useSentWeights();
  useTitle(VIEWS[view]?.title ?? "");
  return (
    <div className="min-h-dvh md:grid md:grid-cols-[5.25rem_1fr]">
      <a
        href="#content"
        className="sr-only z-50 rounded-lg bg-accent px-4 py-2 text-on-accent focus:not-sr-only focus:fixed focus:top-2 focus:left-2"
      >
        Skip to the content
      </a>
      <aside className="md:sticky md:top-0 md:flex md:h-dvh md:flex-col md:border-r md:border-line md:bg-sunken">
        <img src="/icon.svg" alt="" className="mx-auto mt-3 mb-4 hidden size-9 md:block" />
        <Navigation view={view} />
      </aside>
      <div className="min-w-0 pb-20 md:pb-6">
        <Header />
        <main id="content" tabIndex={-1} className="px-3 pt-3 outline-none md:px-5 md:pt-4">
          <Fault key={view}>
            <Suspense fallback={<Skeleton />}>
              <Content view={view} />
            </Suspense>
          </Fault>
        </main>
      </div>
      <Toasts />
    </div>
  );
}

function Content({ view }: { view: string }) {
  const run = useRun();
  const asked = useParameter("run");
  const unknown = useLink((link) => link.unknownRun);
  const View = VIEWS[view]?.component;
  if (!View) return null;
  if (WITHOUT_RUN.includes(view)) return <View />;
  if (unknown && asked) return <UnknownRun run={asked} />;
  if (unknown && !run) return <NoRun />;
  if (!run) return <Waiting />;
  return <View key={run} />;
}

/** The address says which run; without one the newest is followed, also when a newer one starts. */
function useWatchedRun(): void {
  const asked = useParameter("run");
  const shown = useRun();
  const state = useLive((live) => live.state);
  const newest = useRuns().data?.[0]?.run ?? null;
  useEffect(() => feed.watch(asked), [asked]);
  useEffect(() => {
    if (!asked && shown && newest && newest !== shown && !isActive(state)) feed.reconnect();
  }, [asked, shown, newest, state]);
}

function useTitle(title: string): void {
  const state = useLive((live) => live.state);
  useEffect(() => {
    document.title = `${title}${state ? ` · ${state}` : ""} · Hybrid ML Scheduler`;
  }, [title, state]);
}

function Waiting() {
  const problem = useLive((live) => live.problem);
  const connection = useLink((link) => link.connection);
  const away = connection === "offline" || connection === "reconnecting";
  return (
    <div className="mt-24">
      <Empty>{away ? "The gateway does not answer. This page keeps trying." : (problem ?? "Connecting to the arena…")}</Empty>
    </div>
  );
}

function UnknownRun({ run }: { run: string }) {
  return (
    <div className="mt-24">
      <Empty>
        <p className="mb-4">There is no run {run}.</p>
        <Button look="primary" onClick={() => setParameters({ run: null }, false)}>
          Watch the newest run
        </Button>
      </Empty>
    </div>
  );
}

function NoRun() {
  return (
    <div className="mt-24">
      <Empty>
        <p className="mb-4">No run yet. Start one, and the race appears here.</p>
        <Button look="primary" onClick={() => openView("new")}>
          New run
        </Button>
      </Empty>
    </div>
  );
}
