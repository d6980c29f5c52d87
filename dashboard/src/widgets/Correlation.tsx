import { number } from "../format";
import { labelOf } from "../schedulers";
import { Matrix, Widget } from "../ui";
import type { ArenaWidget } from "./layout";
import { SchedulerSelect } from "./SchedulerSelect";
import { noTasksYet, useAnalysis } from "./selection";

export const correlation: ArenaWidget = {
  id: "correlation",
  title: "Correlation",
  caption:
    "Over the newest tasks, −1 to 1. With a good policy the accelerators' share rises with intensity and falls with memory.",
  component: Correlation,
  sizes: { wall: [4, 13], wide: [4, 9], medium: [3, 9] },
};

const NAMES: Record<string, string> = {
  size: "Size",
  compute_intensity: "Intensity",
  memory_required: "Memory",
  time: "Time",
  energy: "Energy",
  cost: "Cost",
  gpu_fraction: "Accelerated",
};

export function Correlation({ fixed = false }: { fixed?: boolean }) {
  const source = useAnalysis();
  const { data } = source;
  return (
    <Widget
      {...correlation}
      title={fixed && data ? `Correlation: ${labelOf(data.scheduler)}` : correlation.title}
      source={source}
      empty={noTasksYet(data)}
      actions={fixed ? undefined : <SchedulerSelect />}
      scroll
    >
      {data && (
        <Matrix
          caption="Correlation of task features, decisions and results"
          rows={data.correlation.names.map((name) => ({ key: name, label: NAMES[name] ?? name }))}
          columns={data.correlation.names.map((name) => ({ key: name, label: NAMES[name] ?? name }))}
          cell={(row, column) => {
            const value = data.correlation.matrix[row]?.[column] ?? null;
            const pair = `${NAMES[data.correlation.names[row] ?? ""]} and ${NAMES[data.correlation.names[column] ?? ""]}`;
            if (value === null) {
              return { value, text: "–", title: `${pair}: one of them is constant`, shade: 0 };
            }
            return { value, text: shortened(value), title: `${pair}: ${number(value, 3)}`, shade: value };
          }}
        />
      )}
    </Widget>
  );
}

/** .42 and −.07: the cell is too small for the leading zero. */
function shortened(value: number): string {
  const text = Math.abs(value).toFixed(2);
  const sign = value < 0 && Number(text) > 0 ? "−" : "";
  return sign + (text.startsWith("0") ? text.slice(1) : text);
}
