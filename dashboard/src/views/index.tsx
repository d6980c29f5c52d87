/** The views by their name in the address. Each is loaded when it is first opened. */
import { Compass, FileText, Flame, History, Radar, Swords } from "lucide-react";
import { type ComponentType, type LazyExoticComponent, lazy } from "react";

const RETRY_MS = 2_000;
const PRELOAD_MS = 3_000;

export interface View {
  title: string;
  component: LazyExoticComponent<ComponentType>;
  /** Has nothing to show before the first run. */
  needsRun?: boolean;
  /** Views with an icon are in the navigation. */
  icon?: ComponentType<{ className?: string; "aria-hidden"?: boolean }>;
}

const LOADERS: (() => Promise<unknown>)[] = [];

/** Loaded when it is first opened, or before: see `preloadViews`. */
function view(load: () => Promise<{ default: ComponentType }>): View["component"] {
  LOADERS.push(load);
  return lazy(() => untilLoaded(load));
}

/** A view that is opened while the gateway does not answer appears when it answers again. */
async function untilLoaded<Module>(load: () => Promise<Module>): Promise<Module> {
  for (;;) {
    try {
      return await load();
    } catch {
      await new Promise((done) => setTimeout(done, RETRY_MS));
    }
  }
}

/** So that every view can be opened when the gateway no longer answers. */
export function preloadViews(): void {
  const load = () => void Promise.allSettled(LOADERS.map((each) => each()));
  setTimeout(load, PRELOAD_MS);
}

export const VIEWS: Record<string, View> = {
  arena: { title: "Arena", needsRun: true, icon: Swords, component: view(() => import("./Arena")) },
  scheduler: { title: "Scheduler", needsRun: true, icon: Radar, component: view(() => import("./Scheduler")) },
  history: { title: "History", icon: History, component: view(() => import("./History")) },
  advice: { title: "Advice", icon: Compass, component: view(() => import("./Advice")) },
  adversary: { title: "Adversary", icon: Flame, component: view(() => import("./Adversary")) },
  log: { title: "Log", icon: FileText, component: view(() => import("./Log")) },
  task: { title: "Task", needsRun: true, component: view(() => import("./Task")) },
  compare: { title: "Compare", component: view(() => import("./Compare")) },
  report: { title: "Report", component: view(() => import("./Report")) },
  guide: { title: "Guide", component: view(() => import("./Guide")) },
  new: { title: "New run", component: view(() => import("./NewRun")) },
};
