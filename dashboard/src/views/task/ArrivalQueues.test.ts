import { describe, expect, it } from "vitest";
import type { ArrivalQueue, TaskDetail } from "../../api/types";
import { cellsOf, outcomesOf, shade } from "./ArrivalQueues";

const work = { tasks: 3, waiting: 2 };

/** Two of 40 GPUs are listed: the one that was chosen, and the one with the least work. */
const QUEUE: ArrivalQueue = {
  scheduler: "greedy",
  started: 12,
  finish: 14,
  complete: true,
  devices: [
    { device: "gpu_3", type: "gpu", chosen: true, seconds: 6, ...work },
    { device: "gpu_9", type: "gpu", chosen: false, seconds: 1, ...work },
  ],
  types: [{ type: "gpu", devices: 40, seconds: 80, shortest: 1, longest: 7, ...work }],
};

function result(scheduler: string, turnaround: number, expected_time: number) {
  return { scheduler, turnaround, expected_time, time: 2, wait: 5, device_name: "gpu_3", cpu_name: null };
}

describe("the queues when a task arrived", () => {
  it("are put beside what was expected and what happened, the earliest end first", () => {
    const results = [result("greedy", 7, 0), result("eft", 3, 1.5)] as unknown as TaskDetail["results"];
    const outcomes = outcomesOf({ arrival_time: 7, queues: [QUEUE, { ...QUEUE, scheduler: "eft" }] }, results);
    expect(outcomes.map(({ scheduler }) => scheduler)).toEqual(["eft", "greedy"]);
    expect(outcomes[1]).toMatchObject({
      devices: "GPU 3",
      queued: 6,
      ahead: 3,
      shortest: 1,
      expected: null,
      started: 5,
    });
    expect(outcomes[0]?.expected).toBe(1.5);
  });

  it("are shown by type where not every device is listed", () => {
    expect(cellsOf(QUEUE)).toMatchObject([{ key: "gpu", seconds: 2, chosen: true, range: [1, 7] }]);
    const two = { ...QUEUE, types: [{ ...QUEUE.types[0], devices: 2 }] } as ArrivalQueue;
    expect(cellsOf(two)).toMatchObject([{ key: "gpu_3", seconds: 6, chosen: true, range: null }, { key: "gpu_9" }]);
  });

  it("are darker by orders of magnitude", () => {
    expect([0, 0.1, 10, 1000].map((value) => Number(shade(value, 100).toFixed(3)))).toEqual([0, 0, 0.667, 1]);
  });
});
