import { ChevronDown, ChevronRight } from "lucide-react";
import { useState } from "react";
import { useRunPolled } from "../api/runs";
import type { RunDetail } from "../api/types";
import { deviceShade } from "../devices";
import { count, percent, seconds } from "../format";
import { type Column, numberColumn, Table, Widget } from "../ui";
import { MOST_BARS, type Work, workOf } from "./meters";
import { useSelectedScheduler } from "./selection";
import { useTypeColours } from "./typeColours";

const COLUMNS: Column<Work>[] = [
  { key: "name", header: "Device", value: (row) => row.label },
  numberColumn("devices", "Devices"),
  numberColumn("busy", "Busy", seconds),
  numberColumn("share", "Share", percent),
];

const BY_DEVICE = "Busy seconds of each device since the start of the run. Best: equal devices have equal work.";
const BY_TYPE = "Busy seconds per device of each type since the start of the run. Click a type for its devices.";

export function WorkPerDevice() {
  const scheduler = useSelectedScheduler();
  const source = useRunPolled<RunDetail>("");
  const totals = scheduler ? source.data?.schedulers[scheduler] : undefined;
  const meters = source.data?.meters ?? [];
  const devices = totals ? workOf(meters, totals.busy, "device") : [];
  const many = devices.length > MOST_BARS;
  return (
    <Widget
      id="devices"
      title="Work per device"
      caption={many ? BY_TYPE : BY_DEVICE}
      source={source}
      empty={source.data && !totals ? "No results of this scheduler are stored yet." : undefined}
      table={
        <Table
          caption="Work per device"
          columns={COLUMNS}
          rows={devices}
          rowKey={(row) => row.key}
          rowAttributes={(row) => ({ "data-device": row.key })}
        />
      }
      scroll
    >
      {many && totals ? (
        <Types types={workOf(meters, totals.busy, "type")} devices={devices} />
      ) : (
        <Bars devices={devices} />
      )}
    </Widget>
  );
}

function longestOf(devices: Work[]): number {
  return Math.max(...devices.map((device) => device.busy_per_device), 1e-12);
}

function Bars({ devices }: { devices: Work[] }) {
  const longest = longestOf(devices);
  return (
    <ul className="flex h-full flex-col justify-evenly gap-1">
      {devices.map((device) => (
        <li key={device.key} data-device={device.key}>
          <Bar work={device} longest={longest} />
        </li>
      ))}
    </ul>
  );
}

/** Each type, and below it its devices when it is open. */
function Types({ types, devices }: { types: Work[]; devices: Work[] }) {
  const [open, setOpen] = useState<string | null>(null);
  const longest = longestOf(open ? [...types, ...devices] : types);
  return (
    <ul className="flex flex-col gap-2 pt-1">
      {types.map((type) => (
        <li key={type.key} data-type={type.key}>
          <button
            type="button"
            aria-expanded={open === type.key}
            className="flex w-full items-center gap-1 text-left"
            onClick={() => setOpen(open === type.key ? null : type.key)}
          >
            {open === type.key ? (
              <ChevronDown aria-hidden className="size-3.5 shrink-0 text-muted" />
            ) : (
              <ChevronRight aria-hidden className="size-3.5 shrink-0 text-muted" />
            )}
            <Bar work={type} longest={longest} />
          </button>
          {open === type.key && (
            <ul className="flex flex-col gap-1 pt-1 pl-4">
              {devices
                .filter((device) => device.type === type.key)
                .map((device) => (
                  <li key={device.key} data-device={device.key}>
                    <Bar work={device} longest={longest} />
                  </li>
                ))}
            </ul>
          )}
        </li>
      ))}
    </ul>
  );
}

function Bar({ work, longest }: { work: Work; longest: number }) {
  const colour = useTypeColours();
  return (
    <span className="num flex min-w-0 flex-1 items-center gap-3 text-[0.8125rem]">
      <span className="w-24 shrink-0 truncate" title={work.label}>
        {work.label}
        {work.devices > 1 && <span className="text-muted"> × {count(work.devices)}</span>}
      </span>
      <span className="h-3 min-w-0 flex-1 rounded-full bg-sunken">
        <span
          className="block h-full rounded-full transition-[width] duration-500"
          style={{
            width: `${(work.busy_per_device / longest) * 100}%`,
            background: deviceShade(colour(work.type), work.position, work.siblings),
          }}
        />
      </span>
      <span className="w-20 shrink-0 text-right font-semibold" data-value={work.busy_per_device}>
        {seconds(work.busy_per_device)}
      </span>
      <span className="w-14 shrink-0 text-right text-muted">{percent(work.share)}</span>
    </span>
  );
}
