import { ChevronDown, ChevronLeft, ChevronRight, ChevronUp, ZoomIn, ZoomOut } from "lucide-react";
import { useEffect, useState } from "react";
import { runPath } from "../api/client";
import type { Polled } from "../api/polling";
import { useRunPolled } from "../api/runs";
import type { Timeline as Data } from "../api/types";
import { deviceLabel, nodeNames, typeLabel } from "../devices";
import { count, number, percent, seconds } from "../format";
import { useDeviceTypes, useLive, useRun } from "../live";
import { labelOf } from "../schedulers";
import { usePalette } from "../theme";
import { Badge, Button, type Column, Link, numberColumn, Select, Table, Widget } from "../ui";
import { setParameters, useParameter } from "../url";
import type { ArenaWidget } from "./layout";
import { SchedulerSelect } from "./SchedulerSelect";
import { useProgress, useSelectedScheduler } from "./selection";
import { Gantt, indexOf, type Mark } from "./timeline/Gantt";
import { type ColourBy, DECISIONS, decisionColours, sizeColour } from "./timeline/paint";
import { clamped, lengthOf, panned, type View, zoomed } from "./timeline/view";

export const timeline: ArenaWidget = {
  id: "timeline",
  title: "Timeline of devices",
  caption:
    "Which task ran where and when, in simulated time; what is right of the line is planned. Best: no device idle while others have queues.",
  component: Timeline,
  sizes: { wall: [12, 10], wide: [8, 9], medium: [6, 10] },
};

const ROWS = 24;
const STRETCHES = [10, 60, 300, 1800];
const DEFAULT_STRETCH = 60;
/** Requests wait until a drag or a series of zooms has come to rest. */
const REST_MS = 250;

const COLUMNS: Column<Data["devices"][number]>[] = [
  { key: "name", header: "Device", value: (row) => deviceLabel(row.name) },
  numberColumn("parts", "Tasks", count, "Tasks that it works on in this stretch, whole or in part"),
  numberColumn("busy", "Busy", percent, "Share of the stretch"),
];

export function Timeline({ fixed = false }: { fixed?: boolean }) {
  const run = useRun();
  const scheduler = useSelectedScheduler();
  const stored = useProgress().data;
  const ready = scheduler !== null && (stored?.schedulers[scheduler]?.tasks.length ?? 0) > 0;
  const stretch = useStretch();
  const devices = useDevices();
  const query = { scheduler, ...stretch.query, ...devices.query, devices: ROWS };
  const source = useRunPolled<Data>("/timeline", query, stretch.chosen ? 10_000 : 3_000, ready);
  const colourBy: ColourBy = useParameter("colour") === "size" ? "size" : "decision";
  const { data } = source;
  return (
    <Widget
      {...timeline}
      title={fixed && data ? `Timeline of devices: ${labelOf(data.scheduler)}` : timeline.title}
      source={settled(source)}
      loading={stored === null}
      empty={ready ? undefined : "No task has run yet."}
      files={run ? [{ label: "Whole run for Perfetto", href: runPath(run, "/trace.json", { scheduler }) }] : undefined}
      actions={
        <>
          <Select
            label="Colour"
            data-testid="timeline-colour"
            value={colourBy}
            choices={[
              { value: "decision", label: "By decision" },
              { value: "size", label: "By task size" },
            ]}
            onChoose={(colour) => setParameters({ colour })}
          />
          {!fixed && <SchedulerSelect />}
        </>
      }
      table={
        <Table
          caption="What each device did in this stretch"
          columns={COLUMNS}
          rows={data?.devices ?? []}
          rowKey={(row) => row.name}
          rowAttributes={(row) => ({ "data-device": row.name })}
        />
      }
    >
      {data && <Body data={data} stretch={stretch} devices={devices} colourBy={colourBy} />}
    </Widget>
  );
}

/** A stretch that was just chosen is not stale: its bars are drawn from what is there until the rest arrives. */
function settled(source: Polled<Data>): Polled<Data> {
  return { ...source, stale: source.stale && source.error !== null };
}

interface Stretch {
  /** None: the newest seconds. */
  chosen: View | null;
  length: number;
  query: Record<string, number>;
  choose: (view: View | null) => void;
  follow: (length: number) => void;
}

/** In the address, so that a stretch can be bookmarked and linked. */
function useStretch(): Stretch {
  const [from, to, last] = ["from", "to", "last"].map(useNumber) as [number | null, number | null, number | null];
  const length = last ?? DEFAULT_STRETCH;
  const [start, end] = [from ?? 0, to ?? 0];
  const isChosen = from !== null && to !== null && to > from;
  const address = isChosen ? { start, end } : null;
  const [moving, setMoving] = useState<View | null>(null);
  useEffect(() => {
    if (!moving) return;
    const timer = setTimeout(() => {
      setParameters({ from: round(moving.start), to: round(moving.end), last: null });
      setMoving(null);
    }, REST_MS);
    return () => clearTimeout(timer);
  }, [moving]);
  const query: Record<string, number> = address ? { ...address } : { seconds: length };
  return {
    chosen: moving ?? address,
    length,
    query,
    choose: setMoving,
    follow: (newest) => {
      setMoving(null);
      setParameters({ from: null, to: null, last: newest });
    },
  };
}

function stretchLabel(length: number): string {
  return length % 60 === 0 ? `${length / 60} min` : seconds(length);
}

function useNumber(key: string): number | null {
  const text = useParameter(key);
  const value = Number(text);
  return text !== null && Number.isFinite(value) && value >= 0 ? value : null;
}

function round(moment: number): number {
  return Number(moment.toFixed(6));
}

interface Devices {
  type: string;
  node: string;
  query: Record<string, string | number | null>;
  choose: (change: { type?: string; node?: string; offset?: number }) => void;
}

function useDevices(): Devices {
  const [chosen, setChosen] = useState({ type: "", node: "", offset: 0 });
  return {
    ...chosen,
    query: { type: chosen.type || null, node: chosen.node || null, offset: chosen.offset },
    choose: (change) => setChosen((now) => ({ ...now, offset: 0, ...change })),
  };
}

interface BodyProps {
  data: Data;
  stretch: Stretch;
  devices: Devices;
  colourBy: ColourBy;
}

function Body({ data, stretch, devices, colourBy }: BodyProps) {
  const [mark, setMark] = useState<Mark | null>(null);
  const [hovered, setHovered] = useState<Mark | null>(null);
  const view = stretch.chosen ?? { start: data.start, end: Math.max(data.end, data.start + 1e-3) };
  const last = Math.max(data.makespan, data.clock);
  return (
    <div className="flex h-full flex-col gap-1.5">
      <Toolbar data={data} stretch={stretch} devices={devices} view={view} last={last} />
      <Gantt
        timeline={data}
        view={view}
        last={last}
        colourBy={colourBy}
        mark={mark}
        onMark={setMark}
        hovered={hovered}
        onHover={setHovered}
        onView={stretch.choose}
      />
      <Position view={view} last={last} choose={stretch.choose} />
      <div className="flex min-h-6 flex-wrap items-center gap-x-4 gap-y-0.5 text-xs">
        <Detail data={data} mark={hovered ?? mark} />
        <Legend colourBy={colourBy} />
      </div>
    </div>
  );
}

interface ToolbarProps extends Omit<BodyProps, "colourBy"> {
  view: View;
  last: number;
}

function Toolbar({ data, stretch, devices, view, last }: ToolbarProps) {
  const middle = (view.start + view.end) / 2;
  const whole = stretch.chosen !== null && view.start === 0 && Math.abs(view.end - last) <= 1e-3 * last;
  const lengths = STRETCHES.includes(stretch.length) ? STRETCHES : [...STRETCHES, stretch.length];
  const choose = (value: string) => {
    if (value === "whole") stretch.choose({ start: 0, end: last });
    else if (value !== "chosen") stretch.follow(Number(value));
  };
  const step = (name: string, icon: typeof ZoomIn, next: View) => {
    const Icon = icon;
    return (
      <Button
        className="size-8!"
        label={name}
        data-testid={`timeline-${name.toLowerCase().replace(" ", "-")}`}
        icon={<Icon aria-hidden className="size-4" />}
        onClick={() => stretch.choose(next)}
      />
    );
  };
  return (
    <div className="flex flex-wrap items-center gap-1.5">
      <Select
        label="Stretch of time"
        data-testid="timeline-stretch"
        value={stretch.chosen ? (whole ? "whole" : "chosen") : String(stretch.length)}
        choices={[
          ...lengths.map((length) => ({ value: String(length), label: `Last ${stretchLabel(length)}` })),
          { value: "whole", label: "Whole run" },
          ...(stretch.chosen && !whole ? [{ value: "chosen", label: "Chosen stretch" }] : []),
        ]}
        onChoose={choose}
      />
      {step("Earlier", ChevronLeft, panned(view, -0.5, last))}
      {step("Later", ChevronRight, panned(view, 0.5, last))}
      {step("Zoom in", ZoomIn, zoomed(view, 0.5, middle, last))}
      {step("Zoom out", ZoomOut, zoomed(view, 2, middle, last))}
      <DeviceChoice data={data} devices={devices} />
      <Shown data={data} />
    </div>
  );
}

/** Type, node and page, where there are more devices than rows. */
function DeviceChoice({ data, devices }: Pick<BodyProps, "data" | "devices">) {
  const types = useDeviceTypes();
  const cluster = useLive((live) => live.spec?.cluster);
  const nodes = cluster ? nodeNames(cluster) : [];
  const total = types.reduce((sum, type) => sum + type.count, 0);
  if (total <= ROWS) return null;
  const upTo = data.offset + data.devices.length;
  return (
    <>
      <Select
        label="Device type"
        value={devices.type}
        choices={[
          { value: "", label: "All types" },
          ...types.map(({ name }) => ({ value: name, label: typeLabel(name) })),
        ]}
        onChoose={(type) => devices.choose({ type })}
      />
      {nodes.length > 1 && (
        <Select
          label="Node"
          value={devices.node}
          choices={[{ value: "", label: "All nodes" }, ...nodes.map((name) => ({ value: name, label: name }))]}
          onChoose={(node) => devices.choose({ node })}
        />
      )}
      {data.matching > ROWS && (
        <>
          <Button
            className="size-8!"
            label="Devices before"
            icon={<ChevronUp aria-hidden className="size-4" />}
            disabled={data.offset === 0}
            onClick={() => devices.choose({ offset: Math.max(data.offset - ROWS, 0) })}
          />
          <Button
            className="size-8!"
            label="Devices after"
            icon={<ChevronDown aria-hidden className="size-4" />}
            disabled={upTo >= data.matching}
            onClick={() => devices.choose({ offset: data.offset + ROWS })}
          />
        </>
      )}
      <span className="num text-xs text-muted" data-testid="timeline-devices">
        devices {count(Math.min(data.offset + 1, upTo))}–{count(upTo)} of {count(data.matching)}
      </span>
    </>
  );
}

/** What is drawn, and what is not. */
function Shown({ data }: { data: Data }) {
  const parts = data.devices.reduce((sum, device) => sum + device.parts, 0);
  return (
    <span className="num text-xs text-muted" data-testid="timeline-shown">
      <span data-value={parts}>{count(parts)}</span> parts of tasks
      {data.blocks && ": too many for bars; the height is the busy share"}
      {!data.complete && (
        <>
          {" "}
          <Badge tone="warn" title="Zoom in to see all of them">
            older tasks are left out
          </Badge>
        </>
      )}
    </span>
  );
}

/** Where the stretch is in the run. */
function Position({ view, last, choose }: { view: View; last: number; choose: (view: View) => void }) {
  const free = last - lengthOf(view);
  if (free <= last * 1e-6) return null;
  return (
    <input
      type="range"
      className="h-4 w-full accent-[var(--accent)]"
      aria-label="Position in the run"
      aria-valuetext={`${seconds(view.start)} to ${seconds(view.end)} of ${seconds(last)}`}
      min={0}
      max={free}
      step={free / 1000}
      value={Math.min(view.start, free)}
      onChange={(event) => {
        const start = Number(event.target.value);
        choose(clamped({ start, end: start + lengthOf(view) }, last));
      }}
    />
  );
}

function Detail({ data, mark }: { data: Data; mark: Mark | null }) {
  const part = indexOf(data, mark);
  if (part === null || !data.parts) {
    return (
      <p className="grow text-muted">
        {data.parts ? "Point at a bar, or select one, for its task." : "Zoom in to see single tasks."}
      </p>
    );
  }
  const { task_id, row, begin, end, decision, size, failed } = data.parts;
  const [task, from, to] = [task_id[part], begin[part], end[part]] as [number, number, number];
  return (
    <p className="num grow" aria-live="polite" data-testid="timeline-task" data-task={task}>
      <Link view="task" change={{ task }} className="text-accent underline">
        Task {count(task)}
      </Link>{" "}
      on {deviceLabel(data.devices[row[part] as number]?.name ?? "")}, <span data-value={from}>{number(from, 5)}</span>–
      {number(to, 5)} s (<span data-value={to - from}>{seconds(to - from)}</span>), size {number(size[part])},{" "}
      {DECISIONS[decision[part] as number]}
      {failed[part] && <Badge tone="bad">failed</Badge>}
    </p>
  );
}

function Legend({ colourBy }: { colourBy: ColourBy }) {
  const palette = usePalette();
  if (colourBy === "size") {
    const colours = [0, 0.5, 1].map((share) => sizeColour(share, palette));
    return (
      <p className="flex items-center gap-2 text-muted">
        small
        <span className="h-2.5 w-24 rounded" style={{ background: `linear-gradient(90deg, ${colours.join(", ")})` }} />
        large task
      </p>
    );
  }
  return (
    <ul className="flex flex-wrap gap-x-3 text-muted" aria-label="Colours">
      {DECISIONS.map((decision, at) => (
        <li key={decision} className="flex items-center gap-1.5">
          <span className="size-2.5 rounded-sm" style={{ background: decisionColours(palette)[at] }} />
          {decision}
        </li>
      ))}
    </ul>
  );
}
