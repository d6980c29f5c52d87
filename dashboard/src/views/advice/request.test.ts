import { expect, test } from "vitest";
import { requestOf } from "./request";

test("what is empty is left out", () => {
  expect(requestOf({}, undefined, null)).toEqual({});
  expect(requestOf({ load: " ", tasks: "" }, undefined, null)).toEqual({});
});

test("numbers, weights and names", () => {
  const answers = { "objective.cost": "0.2", load: "0.8", tasks: "500", schedulers: "eft, greedy", preset: "hpc" };
  expect(requestOf(answers, undefined, null)).toEqual({
    objective: { cost: 0.2 },
    load: 0.8,
    tasks: 500,
    schedulers: ["eft", "greedy"],
    preset: "hpc",
  });
});

test("a trace replaces generated jobs", () => {
  const request = requestOf({ tasks: "500", preset: "hpc" }, "types: []", { name: "jobs.csv", text: "size\n1" });
  expect(request).toEqual({ platform_file: "types: []", trace: "size\n1", trace_name: "jobs.csv" });
});

test("what is no number is for the gateway to refuse", () => {
  expect(requestOf({ load: "much" }, undefined, null)).toEqual({ load: "much" });
});
