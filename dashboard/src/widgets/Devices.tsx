import { useRunPolled } from "../api/runs";
import type { RunDetail, Standing } from "../api/types";
import { percent, seconds } from "../format";
import { usePalette } from "../theme";
import { type Column, Table, Widget } from "../ui";
import { deviceColour, deviceLabel } from "./DeviceUse";
import { useSubject } from "./subject";

interface Device {
  name: string;
  busy: number;
  /** Of all work that this scheduler put on any device. */
  share: number;
}

const COLUMNS: Column<Device>[] = [
  { key: "name", header: "Device", value: (row) => row.name, show: (row) => deviceLabel(row.name) },
  { key: "busy", header: "Busy", numeric: true, value: (row) => row.busy, show: (row) => seconds(row.busy) },
  { key: "share", header: "Share", numeric: true, value: (row) => row.share, show: (row) => percent(row.share) },
];

export function devicesOf(standing: Pick<Standing, "cpu_busy" | "gpu_busy">): Device[] {
  const all = [
    ...standing.cpu_busy.map((busy, at) => ({ name: `cpu_${at}`, busy })),
    ...standing.gpu_busy.map((busy, at) => ({ name: `gpu_${at}`, busy })),
  ];
  const sum = all.reduce((total, device) => total + device.busy, 0);
  return all.map((device) => ({ ...device, share: sum > 0 ? device.busy / sum : 0 }));
}

export function Devices() {
  const subject = useSubject();
  const source = useRunPolled<RunDetail>("");
  const palette = usePalette();
  const standing = subject ? source.data?.schedulers[subject] : undefined;
  const devices = standing ? devicesOf(standing) : [];
  const longest = Math.max(...devices.map((device) => device.busy), 1e-12);
  return (
    <Widget
      id="devices"
      title="Work per device"
      hint="Seconds of work each device got over the whole run. Good is GPUs that share evenly and a CPU that is not the bottleneck."
      source={source}
      empty={source.data && !standing ? "Nothing has been stored for it yet." : undefined}
      table={<Table caption="Work per device" columns={COLUMNS} rows={devices} rowKey={(row) => row.name} rowAttributes={(row) => ({ "data-device": row.name })} />}
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
