import { labelOf } from "../schedulers";
import { number } from "../format";
import { Matrix, Widget } from "../ui";
import { SubjectSelect } from "./SubjectSelect";
import { nothingYet, useAnalysis } from "./subject";

const NAMES: Record<string, string> = {
  size: "Size",
  compute_intensity: "Intensity",
  memory_required: "Memory",
  time: "Time",
  energy: "Energy",
  cost: "Cost",
  gpu_fraction: "GPU share",
};

export function Correlation({ fixed = false }: { fixed?: boolean }) {
  const source = useAnalysis();
  const { data } = source;
  return (
    <Widget
      id="correlation"
      title={fixed && data ? `What moves with what: ${labelOf(data.scheduler)}` : "What moves with what"}
      hint="Correlation over the newest tasks, −1 to 1. A good policy's GPU share rises with intensity and falls with memory."
      source={source}
      empty={nothingYet(data)}
      actions={fixed ? undefined : <SubjectSelect />}
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
              return { value, text: "–", title: `${pair}: one of them does not vary`, shade: 0 };
            }
            return { value, text: shortened(value), title: `${pair}: ${number(value, 3)}`, shade: value };
          }}
        />
      )}
    </Widget>
  );
}

/** .42 and −.07: the leading zero says nothing in a cell this small. */
function shortened(value: number): string {
  const text = Math.abs(value).toFixed(2);
  const sign = value < 0 && Number(text) > 0 ? "−" : "";
  return sign + (text.startsWith("0") ? text.slice(1) : text);
}
