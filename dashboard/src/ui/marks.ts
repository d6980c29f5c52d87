/** Vertical lines in charts over the tasks of a run: where the workload changes and where models were swapped. */
import type { RunSpec, StoredModel } from "../api/types";
import type { Palette } from "../theme";

export interface Mark {
  /** The task. */
  at: number;
  /** Empty: too many for a text each. */
  label: string;
  kind: "drift" | "model";
}

/** More lines than this would hide the chart: every second, third … swap is drawn. */
const MOST_SWAPS = 40;
const MOST_LABELS = 4;

export function driftMarks(spec: Pick<RunSpec, "workload"> | null): Mark[] {
  return (spec?.workload.drift ?? []).map(({ after, preset }) => ({ at: after, label: preset, kind: "drift" }));
}

export function modelMarks(models: readonly StoredModel[]): Mark[] {
  const swaps = models.filter((model) => model.shipped && model.last_task > 0);
  const step = Math.ceil(swaps.length / MOST_SWAPS);
  const drawn = swaps.filter((_, at) => at % Math.max(step, 1) === 0);
  return drawn.map(({ last_task, version }) => ({
    at: last_task,
    label: drawn.length <= MOST_LABELS ? `v${version}` : "",
    kind: "model",
  }));
}

/** For the first series of a chart. */
export function markLines(marks: readonly Mark[], palette: Palette) {
  return {
    silent: true,
    symbol: "none",
    data: marks.map(({ at, label, kind }) => ({
      xAxis: at,
      label: {
        show: label !== "",
        formatter: label,
        position: "insideEndTop" as const,
        color: kind === "drift" ? palette.warn : palette.accent2,
        fontSize: palette.small,
      },
      lineStyle: {
        color: kind === "drift" ? palette.warn : palette.accent2,
        type: kind === "drift" ? ("dashed" as const) : ("dotted" as const),
        width: 1,
        opacity: kind === "drift" ? 0.9 : 0.55,
      },
    })),
  };
}

/** For the caption of a chart. */
export function markText(marks: readonly Mark[]): string {
  const kinds = [
    marks.some((mark) => mark.kind === "drift") && "dashed: the workload changes",
    marks.some((mark) => mark.kind === "model") && "dotted: a new model decides",
  ].filter(Boolean);
  return kinds.length ? ` Vertical lines: ${kinds.join("; ")}.` : "";
}
