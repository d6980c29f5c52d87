import { useRunPolled } from "../api/runs";
import type { RunDetail, SchedulerTotals } from "../api/types";
import { percent, seconds } from "../format";
import { usePalette } from "../theme";
import { type Column, numberColumn, Table, Widget } from "../ui";
import { deviceColour, deviceLabel } from "./DeviceUtilization";
import { useSelectedScheduler } from "./selection";

interface Device {
  name: string;
  busy: number;
  /** Of the work on all devices. */
  share: number;
}

const COLUMNS: Column<Device>[] = [
  { key: "name", header: "Device", value: (row) => row.name, show: (row) => deviceLabel(row.name) },
  numberColumn("busy", "Busy", seconds),
  numberColumn("share", "Share", percent),
];

export function devicesOf(totals: Pick<SchedulerTotals, "cpu_busy" | "gpu_busy">): Device[] {
  const all = [
    ...totals.cpu_busy.map((busy, at) => ({ name: `cpu_${at}`, busy })),
    ...totals.gpu_busy.map((busy, at) => ({ name: `gpu_${at}`, busy })),
  ];
  const sum = all.reduce((total, device) => total + device.busy, 0);
  return all.map((device) => ({ ...device, share: sum > 0 ? device.busy / sum : 0 }));
}

export function WorkPerDevice() {
  const scheduler = useSelectedScheduler();
  const source = useRunPolled<RunDetail>("");
  const palette = usePalette();
  const totals = scheduler ? source.data?.schedulers[scheduler] : undefined;
  const devices = totals ? devicesOf(totals) : [];
  const longest = Math.max(...devices.map((device) => device.busy), 1e-12);
  return (
    <Widget
      id="devices"
      title="Work per device"
      caption="Busy seconds of each device since the start of the run. Best: equal GPUs, and a CPU that is not the bottleneck."
      source={source}
      empty={source.data && !totals ? "No results of this scheduler are stored yet." : undefined}
      table={
        <Table
          caption="Work per device"
          columns={COLUMNS}
          rows={devices}
          rowKey={(row) => row.name}
          rowAttributes={(row) => ({ "data-device": row.name })}
        />
      }
      scroll
    >
      <ul className="flex h-full flex-col justify-evenly gap-1">
        {devices.map((device) => (
          <li key={device.name} className="num flex items-center gap-3 text-[0.8125rem]" data-device={device.name}>
            <span className="w-14 shrink-0">{deviceLabel(device.name)}</span>
            <span className="h-3 min-w-0 flex-1 rounded-full bg-sunken">
              <span
                className="block h-full rounded-full transition-[width] duration-500"
                style={{ width: `${(device.busy / longest) * 100}%`, background: deviceColour(device.name, palette) }}
              />
            </span>
            <span className="w-20 shrink-0 text-right font-semibold">{seconds(device.busy)}</span>
            <span className="w-14 shrink-0 text-right text-muted">{percent(device.share)}</span>
          </li>
        ))}
      </ul>
    </Widget>
  );
}
