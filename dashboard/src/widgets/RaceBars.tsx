import { type RefObject, useLayoutEffect, useMemo, useRef } from "react";
import { number, overOracle, ratio, seconds } from "../format";
import type { ComparisonRow } from "../live";
import { averageOf, bestCompetitor, inOrder, type RaceMeasure } from "../raceMeasure";
import { ORACLE } from "../schedulers";
import { usePalette } from "../theme";
import { RankedName } from "../ui";
import { scaleEnd } from "./raceScale";

/** A bar per scheduler: execution and waiting, which together are its turnaround. */
export function RaceBars({ rows, measure }: { rows: ComparisonRow[]; measure: RaceMeasure }) {
  // In the order of their places, which is also that of the Tab key.
  const ordered = useMemo(() => inOrder(rows, measure), [rows, measure]);
  const list = useRef<HTMLOListElement>(null);
  useSlide(
    list,
    ordered.map((row) => row.name),
  );
  const end = scaleEnd(rows, measure);
  const best = bestCompetitor(rows, measure);
  const oracle = rows.find((row) => row.name === ORACLE && row.tasks > 0);
  return (
    <div className="flex h-full flex-col gap-1.5">
      <ol
        ref={list}
        className="flex min-h-56 shrink-0 grow flex-col pt-1"
        style={{ minHeight: `${rows.length * 2}rem` }}
      >
        {ordered.map((row, place) => (
          <li
            key={row.name}
            className="flex flex-1 basis-0 items-center gap-3"
            data-scheduler={row.name}
            data-place={place + 1}
          >
            <span className="w-30 shrink-0 pl-1 text-[0.8125rem] leading-tight">
              <RankedName row={row} />
            </span>
            <Bar row={row} end={end} oracle={row.name === ORACLE ? null : (oracle?.avg_time ?? null)} />
            <span className="num w-19 shrink-0 text-right text-[0.8125rem] leading-tight">
              <span className="font-semibold" data-field={`avg_${measure}`} data-value={row[`avg_${measure}`]}>
                {row.tasks ? seconds(row[`avg_${measure}`]) : "waiting"}
              </span>
              <span className="block text-[0.6875rem] text-muted">
                {measure === "time" ? besideOracle(row, oracle) : besideBest(row, best)}
              </span>
            </span>
          </li>
        ))}
      </ol>
      <Key end={end} cut={rows.some((row) => isCut(row, end))} oracle={oracle !== undefined} />
    </div>
  );
}

/** A row whose place changes slides there. */
function useSlide(list: RefObject<HTMLOListElement | null>, order: string[]): void {
  const places = useRef(new Map<string, number>());
  const key = order.join();
  useLayoutEffect(() => {
    const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    const before = places.current;
    places.current = new Map(key.split(",").map((name, place) => [name, place]));
    for (const row of still ? [] : (list.current?.children ?? [])) {
      const name = (row as HTMLElement).dataset.scheduler ?? "";
      const from = before.get(name);
      const moved = ((from ?? 0) - (places.current.get(name) ?? 0)) * (row as HTMLElement).offsetHeight;
      if (from === undefined || moved === 0) continue;
      row.animate([{ transform: `translateY(${moved}px)` }, { transform: "none" }], { duration: 500, easing: "ease" });
    }
  }, [list, key]);
}

/** The turnaround as a multiple of the best competitor's. */
function besideBest(row: ComparisonRow, best: ComparisonRow | undefined): string {
  if (!best || row.tasks === 0) return "";
  if (row.name === best.name) return "best";
  return `${number(ratio(averageOf(row, "turnaround"), averageOf(best, "turnaround")))}×`;
}

/** Exact on the same tasks; otherwise from the averages, marked with ≈. */
function besideOracle(row: ComparisonRow, oracle: ComparisonRow | undefined): string {
  if (row.name === ORACLE) return "best possible";
  if (row.vs_oracle !== null) return overOracle(row.vs_oracle);
  const estimate = row.tasks > 0 ? ratio(row.avg_time, oracle?.avg_time) : null;
  return estimate === null ? "" : `≈ ${overOracle(estimate)}`;
}

function isCut(row: ComparisonRow, end: number): boolean {
  return row.tasks > 0 && (row.avg_turnaround ?? 0) > end * 1.001;
}

function Bar({ row, end, oracle }: { row: ComparisonRow; end: number; oracle: number | null }) {
  const { colour, theme } = usePalette();
  const hue = colour(row.name);
  const part = (value: number | null) => (row.tasks > 0 ? Math.min(1, (value ?? 0) / end) * 100 : 0);
  const execution = Math.max(0.6, part(row.avg_time));
  const cut = isCut(row, end);
  return (
    <span
      className="relative h-[46%] max-h-6 min-w-0 flex-1 overflow-hidden rounded bg-sunken"
      title={`${seconds(row.avg_time)} execution + ${seconds(row.avg_wait)} waiting = ${seconds(row.avg_turnaround)} turnaround`}
    >
      <span
        className="absolute inset-y-0 left-0"
        data-field="avg_wait"
        data-value={row.avg_wait}
        style={{ width: `${part(row.avg_turnaround).toFixed(2)}%`, background: stripes(hue) }}
      />
      <span
        className="absolute inset-y-0 left-0"
        style={{
          width: `${execution.toFixed(2)}%`,
          background: hue,
          boxShadow: theme === "dark" ? `0 0 18px -4px ${hue}` : "none",
        }}
      />
      {oracle !== null && (
        <span
          aria-hidden
          className="absolute inset-y-0 w-0.5 -translate-x-1/2"
          style={{ left: `${((oracle / end) * 100).toFixed(2)}%`, background: colour(ORACLE) }}
        />
      )}
      {cut && <BreakMark />}
    </span>
  );
}

function stripes(hue: string): string {
  const [dense, light] = [
    `color-mix(in oklab, ${hue} 55%, transparent)`,
    `color-mix(in oklab, ${hue} 25%, transparent)`,
  ];
  return `repeating-linear-gradient(45deg, ${dense} 0 4px, ${light} 4px 8px)`;
}

/** Two slanted gaps: the bar is longer than it is drawn. */
function BreakMark() {
  return (
    <span aria-hidden className="absolute -inset-y-1 right-3 flex -skew-x-[20deg] gap-1">
      <span className="w-1.5 bg-raised" />
      <span className="w-1.5 bg-raised" />
    </span>
  );
}

function Key({ end, cut, oracle }: { end: number; cut: boolean; oracle: boolean }) {
  const { muted, colour } = usePalette();
  const swatch = "h-2.5 w-4 shrink-0 rounded-[2px]";
  return (
    <p className="flex flex-wrap items-center gap-x-3 gap-y-1 text-[0.6875rem] text-muted">
      <span className="inline-flex items-center gap-1.5">
        <span aria-hidden className={swatch} style={{ background: muted }} /> execution
      </span>
      <span className="inline-flex items-center gap-1.5">
        <span aria-hidden className={swatch} style={{ background: stripes(muted) }} /> waiting
      </span>
      {oracle && (
        <span className="inline-flex items-center gap-1.5">
          <span aria-hidden className="h-3 w-0.5" style={{ background: colour(ORACLE) }} /> Oracle's execution
        </span>
      )}
      {cut && (
        <span className="inline-flex items-center gap-1.5">
          <span
            aria-hidden
            className="relative h-2.5 w-8 shrink-0 overflow-hidden rounded-[2px]"
            style={{ background: stripes(muted) }}
          >
            <BreakMark />
          </span>
          cut at {seconds(end)}
        </span>
      )}
    </p>
  );
}
