import { TriangleAlert } from "lucide-react";
import { type ReactNode, useEffect, useMemo, useRef } from "react";
import { useShallow } from "zustand/shallow";
import { usePolled } from "../api/polling";
import { useRunPolled } from "../api/runs";
import type { Errors, Scheduler as SchedulerInfo } from "../api/types";
import { useAllSchedulers, useLive } from "../live";
import { colourOf, labelOf, ORACLE } from "../schedulers";
import { SuspendedNotice } from "../shell/SuspendedNotice";
import { useTheme } from "../theme";
import { setParameters, useParameter } from "../url";
import { Correlation } from "../widgets/Correlation";
import { Cumulative } from "../widgets/Cumulative";
import { DeviceUtilization } from "../widgets/DeviceUtilization";
import { ExpectedTimeErrors } from "../widgets/ExpectedTimeErrors";
import { GpuCpuTime } from "../widgets/GpuCpuTime";
import { Heatmap } from "../widgets/Heatmap";
import { Models } from "../widgets/Models";
import { QueueLength } from "../widgets/QueueLength";
import { Radar } from "../widgets/Radar";
import { RecentDecisions } from "../widgets/RecentDecisions";
import { SchedulerSummary } from "../widgets/SchedulerSummary";
import { Timeline } from "../widgets/Timeline";
import { WorkPerDevice } from "../widgets/WorkPerDevice";

/** One scheduler compared with the Oracle. */
export default function Scheduler() {
  const names = useAllSchedulers();
  const selected = useParameter("scheduler");
  const first = names.find((name) => name !== ORACLE) ?? names[0];
  const name = selected && names.includes(selected) ? selected : null;
  useEffect(() => {
    if (!name && first) setParameters({ scheduler: first });
  }, [name, first]);
  const suspended = useLive((live) => name !== null && name in live.suspended);
  if (!name) return null;
  return (
    <>
      <SchedulerTabs names={names} selected={name} />
      <SuspendedNotice name={name} />
      {suspended ? <BeforeSuspension name={name} /> : <Details name={name} />}
    </>
  );
}

/** It is compared with nobody: only what it has decided before is shown. */
function BeforeSuspension({ name }: { name: string }) {
  return (
    <div className="grid grid-cols-1">
      <Cell>
        <RecentDecisions only={name} />
      </Cell>
    </div>
  );
}

function Details({ name }: { name: string }) {
  const pair = useMemo(() => [name, ORACLE], [name]);
  const learns = useLive((live) => (live.comparison[name]?.model_version ?? 0) > 0);
  const errors = useRunPolled<Errors>("/errors", { scheduler: name }, 10_000);
  return (
    <>
      <SchedulerSummary name={name} />
      <div className="mt-3.5 grid grid-cols-1 gap-3.5 lg:grid-cols-2 xl:grid-cols-3">
        <Cell>
          <Radar />
        </Cell>
        <Cell>
          <Cumulative names={pair} />
        </Cell>
        <Cell>
          <DeviceUtilization fixed />
        </Cell>
        <Cell wide>
          <Timeline fixed />
        </Cell>
        <Cell>
          <QueueLength names={pair} />
        </Cell>
        <Cell>
          <Heatmap fixed />
        </Cell>
        <Cell>
          <WorkPerDevice />
        </Cell>
        <Cell>
          <GpuCpuTime names={pair} />
        </Cell>
        <Cell>
          <Correlation fixed />
        </Cell>
        {errors.data?.schedulers[name] && (
          <Cell>
            <ExpectedTimeErrors source={errors} name={name} />
          </Cell>
        )}
        {learns && (
          <Cell wide>
            <Models learner={name} />
          </Cell>
        )}
        <Cell wide={!learns} full={learns}>
          <RecentDecisions only={name} />
        </Cell>
      </div>
    </>
  );
}

function Cell({ wide = false, full = false, children }: { wide?: boolean; full?: boolean; children: ReactNode }) {
  const span = full ? "lg:col-span-2 xl:col-span-3" : wide ? "lg:col-span-2" : "";
  return <div className={`h-[23rem] ${span}`}>{children}</div>;
}

/** One button per scheduler, and the description of the selected one. */
function SchedulerTabs({ names, selected }: { names: string[]; selected: string }) {
  const theme = useTheme();
  const suspended = useLive(useShallow((live) => Object.keys(live.suspended)));
  const schedulers = usePolled<SchedulerInfo[]>("/api/schedulers", 30_000).data;
  const pressed = useRef<HTMLButtonElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a link opens one that may be out of sight
  useEffect(() => {
    // Not returned: newer browsers give a promise, which React would call.
    pressed.current?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [selected, names.length]);
  const description = schedulers?.find((each) => each.name === selected)?.description;
  return (
    <div className="mb-3.5">
      <div role="group" aria-label="Scheduler" className="flex gap-2 overflow-x-auto p-1">
        {names.map((name) => {
          const colour = colourOf(name, theme);
          const active = name === selected;
          return (
            <button
              key={name}
              ref={active ? pressed : undefined}
              type="button"
              aria-pressed={active}
              data-scheduler={name}
              onClick={() => setParameters({ scheduler: name, before: null }, false)}
              className="shrink-0 rounded-full border px-3.5 py-1.5 text-[0.8125rem] whitespace-nowrap transition-colors"
              style={{
                borderColor: active ? colour : "var(--line)",
                background: active ? `color-mix(in oklab, ${colour} 16%, transparent)` : "transparent",
                color: active ? "var(--ink)" : "var(--muted)",
              }}
            >
              {suspended.includes(name) && (
                <TriangleAlert aria-label="Suspended" className="-mt-0.5 mr-1.5 inline size-3.5 text-bad" />
              )}
              {labelOf(name)}
            </button>
          );
        })}
      </div>
      {description && <p className="mt-2 max-w-4xl px-1 text-[0.8125rem] text-muted">{description}</p>}
    </div>
  );
}
