import { type ReactNode, useEffect, useMemo } from "react";
import type { SchedulerInfo } from "../api/types";
import { usePolled } from "../api/usePolled";
import { useLive, useSchedulers } from "../live";
import { colourOf, labelOf, ORACLE } from "../schedulers";
import { useTheme } from "../theme";
import { setParameters, useParameter } from "../url";
import { Correlation } from "../widgets/Correlation";
import { Cumulative } from "../widgets/Cumulative";
import { Devices } from "../widgets/Devices";
import { DeviceUse } from "../widgets/DeviceUse";
import { Headline } from "../widgets/Headline";
import { Heatmap } from "../widgets/Heatmap";
import { Ledger } from "../widgets/Ledger";
import { Models } from "../widgets/Models";
import { Radar } from "../widgets/Radar";
import { Split } from "../widgets/Split";

/** One scheduler against the Oracle. */
export default function Scheduler() {
  const names = useSchedulers();
  const asked = useParameter("scheduler");
  const standard = names.find((name) => name !== ORACLE) ?? names[0];
  const name = asked && names.includes(asked) ? asked : null;
  useEffect(() => {
    if (!name && standard) setParameters({ scheduler: standard });
  }, [name, standard]);
  const pair = useMemo(() => (name ? [name, ORACLE] : []), [name]);
  const learns = useLive((live) => (name ? (live.comparison[name]?.model_version ?? 0) > 0 : false));
  if (!name) return null;
  return (
    <>
      <Field names={names} chosen={name} />
      <Headline name={name} />
      <div className="mt-3.5 grid grid-cols-1 gap-3.5 lg:grid-cols-2 xl:grid-cols-3">
        <Cell><Radar /></Cell>
        <Cell><Cumulative names={pair} /></Cell>
        <Cell><DeviceUse fixed /></Cell>
        <Cell><Heatmap fixed /></Cell>
        <Cell><Devices /></Cell>
        <Cell><Split names={pair} /></Cell>
        <Cell><Correlation fixed /></Cell>
        {learns && <Cell wide><Models learner={name} /></Cell>}
        <Cell wide={!learns} full={learns}><Ledger only={name} title="Recent decisions" /></Cell>
      </div>
    </>
  );
}

function Cell({ wide = false, full = false, children }: { wide?: boolean; full?: boolean; children: ReactNode }) {
  const span = full ? "lg:col-span-2 xl:col-span-3" : wide ? "lg:col-span-2" : "";
  return <div className={`h-[23rem] ${span}`}>{children}</div>;
}

/** Who competes; the chosen one's own words about itself below. */
function Field({ names, chosen }: { names: string[]; chosen: string }) {
  const theme = useTheme();
  const deployed = usePolled<SchedulerInfo[]>("/api/schedulers", 30_000).data;
  const words = deployed?.find((each) => each.name === chosen)?.description;
  return (
    <div className="mb-3.5">
      <div role="group" aria-label="Scheduler" className="flex gap-2 overflow-x-auto p-1">
        {names.map((name) => {
          const colour = colourOf(name, theme);
          const on = name === chosen;
          return (
            <button
              key={name}
              type="button"
              aria-pressed={on}
              data-scheduler={name}
              onClick={() => setParameters({ scheduler: name, before: null }, false)}
              className="shrink-0 rounded-full border px-3.5 py-1.5 text-[0.8125rem] whitespace-nowrap transition-colors"
              style={{
                borderColor: on ? colour : "var(--line)",
                background: on ? `color-mix(in oklab, ${colour} 16%, transparent)` : "transparent",
                color: on ? "var(--ink)" : "var(--muted)",
              }}
            >
              {labelOf(name)}
            </button>
          );
        })}
      </div>
      {words && <p className="mt-2 max-w-4xl px-1 text-[0.8125rem] text-muted">{words}</p>}
    </div>
  );
}
