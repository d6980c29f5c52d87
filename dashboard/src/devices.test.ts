import { describe, expect, it } from "vitest";
import type { DeviceType, RunSpec } from "./api/types";
import {
  deviceCounts,
  deviceLabel,
  deviceShade,
  devicesLabel,
  isAccelerator,
  nodeNames,
  placementText,
  typeColours,
  typeLabel,
} from "./devices";

type Cluster = RunSpec["cluster"];

describe("the placement of a task", () => {
  it("names the devices that worked on it", () => {
    const text = (gpu_fraction: number, device_name: string | null, cpu_name: string | null) =>
      placementText({ gpu_fraction, device_name, cpu_name });
    expect(text(0, null, "cpu_0")).toBe("all of it on CPU 0");
    expect(text(1, "gpu_2", null)).toBe("all of it on GPU 2");
    expect(text(0.6, "gpu_2", "cpu_0")).toBe("60.0 % on GPU 2, 40.0 % on CPU 0");
    // Its memory did not fit: the CPU ran what was meant for the GPU.
    expect(text(1, null, "cpu_0")).toBe("all of it on CPU 0");
  });
});

describe("labels", () => {
  it("of short type names are in capitals", () => {
    expect(["gpu", "cpu", "v100", "t4", "rtx4090", "xeon", "cpu_fast", "A100-80"].map(typeLabel)).toEqual([
      "GPU",
      "CPU",
      "V100",
      "T4",
      "RTX4090",
      "xeon",
      "cpu_fast",
      "A100-80",
    ]);
  });

  it("of devices have the node and the number", () => {
    expect(deviceLabel("gpu_0")).toBe("GPU 0");
    expect(deviceLabel("rack-1/v100_12")).toBe("rack-1 V100 12");
    expect(deviceLabel("rack-1/cpu_fast_0")).toBe("rack-1 cpu_fast 0");
    expect(deviceLabel("big-0/a100")).toBe("big-0 A100");
    expect(deviceLabel("cpu")).toBe("CPU");
  });

  it("of a task have the devices that worked on it", () => {
    expect(devicesLabel({ device_name: "gpu_3", cpu_name: "cpu_0" })).toBe("GPU 3 + CPU 0");
    expect(devicesLabel({ device_name: null, cpu_name: "a/cpu_1" })).toBe("a CPU 1");
    expect(devicesLabel({ device_name: null, cpu_name: null })).toBe("–");
  });
});

describe("a cluster", () => {
  const device = (type: string, count: number, node: string) => ({ type, count, node });
  const rack = {
    devices: [device("a100", 4, "big"), device("cpu", 2, "big"), device("cpu", 1, "small")],
    nodes: [
      { name: "big", count: 2 },
      { name: "small", count: 1 },
    ],
  } as unknown as Cluster; // only what is read

  it("has numbered nodes where there are several of a name", () => {
    expect(nodeNames(rack)).toEqual(["big-0", "big-1", "small"]);
    expect(nodeNames({ ...rack, nodes: [] })).toEqual(["big", "small"]);
    expect(nodeNames({ ...rack, nodes: [], devices: [] })).toEqual(["node"]);
  });

  it("has the devices of all its nodes", () => {
    expect([...deviceCounts(rack)]).toEqual([
      ["a100", 8],
      ["cpu", 5],
    ]);
  });

  it("has an accelerator in every type that is not called cpu, unless it is described", () => {
    const types: DeviceType[] = [{ name: "cpu_array", accelerator: true, count: 1 }];
    expect(["tpu", "cpu", "CPU-2", "cpu_array"].map((type) => isAccelerator(type, types))).toEqual([
      true,
      false,
      false,
      true,
    ]);
  });
});

type Colour = [number, number, number];

/** Colours as people see them who lack one kind of cone: Machado, Oliveira, Fernandes (2009), severity 1. */
const VISION: Record<string, Colour[]> = {
  normal: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritanopia: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};

function linear(hex: string): Colour {
  return [1, 3, 5].map((at) => {
    const part = parseInt(hex.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }) as Colour;
}

function times(matrix: Colour[], [r, g, b]: Colour): Colour {
  return matrix.map((row) => row[0] * r + row[1] * g + row[2] * b) as Colour;
}

/** Ottosson's OKLab, in which equal distances look equally different. */
function oklab(rgb: Colour): Colour {
  const cones = times(
    [
      [0.4122214708, 0.5363325363, 0.0514459929],
      [0.2119034982, 0.6806995451, 0.1073969566],
      [0.0883024619, 0.2817188376, 0.6299787005],
    ],
    rgb,
  ).map(Math.cbrt) as Colour;
  return times(
    [
      [0.2104542553, 0.793617785, -0.0040720468],
      [1.9779984951, -2.428592205, 0.4505937099],
      [0.0259040371, 0.7827717662, -0.808675766],
    ],
    cones,
  );
}

function seen(hex: string, vision: Colour[]): Colour {
  return oklab(times(vision, linear(hex)).map((part) => Math.min(1, Math.max(0, part))) as Colour);
}

function distance(a: Colour, b: Colour): number {
  return Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

describe("colours of device types", () => {
  const ACCELERATORS = ["a100", "v100", "t4", "tpu", "fpga", "k80"];
  const CPUS = ["cpu", "cpu_b", "cpu_c", "cpu_d"];
  const PALETTES = [
    { theme: "dark", gpu: "#7aa2ff", cpu: "#ff8f6b" },
    { theme: "light", gpu: "#4a6fe3", cpu: "#dd6b3d" },
  ] as const;

  it("are those of GPU and CPU for the first of each kind", () => {
    for (const palette of PALETTES) {
      expect(typeColours(["gpu", "cpu"], [], palette)).toEqual({ gpu: palette.gpu, cpu: palette.cpu });
    }
  });

  it("do not depend on the order of CPUs among accelerators", () => {
    const [palette] = PALETTES;
    expect(typeColours(["cpu", "a100", "t4"], [], palette)).toEqual(typeColours(["a100", "cpu", "t4"], [], palette));
  });

  it("differ for everybody, in both themes", () => {
    for (const palette of PALETTES) {
      const colours = Object.values(typeColours([...ACCELERATORS, ...CPUS], [], palette));
      for (const [name, vision] of Object.entries(VISION)) {
        const all = colours.map((colour) => seen(colour, vision));
        const distances = all.flatMap((a, at) => all.slice(at + 1).map((b) => distance(a, b)));
        // A just noticeable difference is about 0.02.
        expect(Math.min(...distances), `${palette.theme} ${name}`).toBeGreaterThan(0.09);
      }
    }
  });

  it("never repeat, however many types there are", () => {
    for (const theme of ["dark", "light"] as const) {
      const many = Array.from({ length: 40 }, (_, at) => (at % 2 ? `cpu${at}` : `x${at}`));
      const colours = typeColours(many, [], { theme, gpu: "#7aa2ff", cpu: "#ff8f6b" });
      expect(new Set(Object.values(colours)).size).toBe(40);
    }
  });

  it("of equal devices all differ", () => {
    const shades = Array.from({ length: 16 }, (_, at) => deviceShade("#7aa2ff", at, 16));
    expect(new Set(shades).size).toBe(16);
    expect(shades.at(-1)).toBe("rgba(122, 162, 255, 0.250)");
  });
});
