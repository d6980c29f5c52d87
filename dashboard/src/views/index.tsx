/** The views by their name in the address. Each is loaded when it is first opened. */
import { FileText, History, Radar, Swords } from "lucide-react";
import { type ComponentType, type LazyExoticComponent, lazy } from "react";

export interface View {
  title: string;
  component: LazyExoticComponent<ComponentType>;
  /** Views with an icon are in the navigation. */
  icon?: ComponentType<{ className?: string; "aria-hidden"?: boolean }>;
}

export const VIEWS: Record<string, View> = {
  arena: { title: "Arena", icon: Swords, component: lazy(() => import("./Arena")) },
  scheduler: { title: "Scheduler", icon: Radar, component: lazy(() => import("./Scheduler")) },
  history: { title: "History", icon: History, component: lazy(() => import("./History")) },
  log: { title: "Log", icon: FileText, component: lazy(() => import("./Log")) },
  task: { title: "Task", component: lazy(() => import("./Task")) },
  compare: { title: "Compare", component: lazy(() => import("./Compare")) },
  new: { title: "New run", component: lazy(() => import("./NewRun")) },
};
