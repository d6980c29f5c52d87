import { describe, expect, it } from "vitest";
import type { RunSpec } from "../../api/types";
import { changesOf, forkFields } from "./changes";

const spec = (cluster: unknown, source = "generated") =>
  ({ cluster, workload: { source, arrival_rate: 12 } }) as unknown as RunSpec;

const SHORT = spec({ gpus: 4, cpus: 1, devices: [] });

describe("the fields of a fork", () => {
  it("are the counts of the short form and the arrival rate", () => {
    expect(forkFields(SHORT).map(({ path, now }) => [path, now])).toEqual([
      ["cluster.gpus", "4"],
      ["cluster.cpus", "1"],
      ["workload.arrival_rate", "12"],
    ]);
  });

  it("name the node where a type is listed twice, and have no rate for submitted tasks", () => {
    const devices = [
      { type: "cpu", count: 2, node: "a" },
      { type: "v100", count: 4, node: "a" },
      { type: "v100", count: 8, node: "b" },
    ];
    expect(forkFields(spec({ devices }, "submitted")).map(({ label }) => label)).toEqual([
      "cpu",
      "v100 in a",
      "v100 in b",
    ]);
  });
});

describe("the changes of a fork", () => {
  it("are what differs, and the lines of the text", () => {
    const values = { "cluster.gpus": " 5", "cluster.cpus": "1", "workload.arrival_rate": "" };
    expect(changesOf(forkFields(SHORT), values, "pace=max\n\n  objective.energy=0.5 ")).toEqual([
      "cluster.gpus=5",
      "pace=max",
      "objective.energy=0.5",
    ]);
  });
});
