import { describe, expect, it } from "vitest";
import { currentProblems, sortProblems } from "./problems";

const FIELDS = ["seed", "workload.arrival_rate", "workload.drift", "schedulers"];

describe("problems", () => {
  it("belong to the field that they name", () => {
    const sorted = sortProblems(
      [
        "workload.arrival_rate: Input should be greater than 0 (got -1.0)",
        "seed: Input should be greater than or equal to 0 (got -3)",
      ],
      FIELDS,
    );
    expect(sorted.fields).toEqual({
      "workload.arrival_rate": ["Input should be greater than 0 (got -1.0)"],
      seed: ["Input should be greater than or equal to 0 (got -3)"],
    });
    expect(sorted.others).toEqual([]);
  });

  it("of a nested field belong to the field above it", () => {
    const sorted = sortProblems(["workload.drift.0.after: Field required"], FIELDS);
    expect(sorted.fields).toEqual({ "workload.drift": ["0.after: Field required"] });
  });

  it("without a field are kept unchanged", () => {
    const problems = [
      "oracle.step: Input should be greater than 0 (got 0)",
      "no scheduler answers: deploy at least one worker",
      "schedulers_extra: unknown key; allowed: schedulers",
    ];
    expect(sortProblems(problems, FIELDS)).toEqual({ fields: {}, others: problems });
  });

  it("of one field are all kept, in order", () => {
    const sorted = sortProblems(["schedulers: first", "schedulers.1: second"], FIELDS);
    expect(sorted.fields.schedulers).toEqual(["first", "1: second"]);
  });
});

describe("problems of the draft on the screen", () => {
  it("are not those of a field that has changed since the check", () => {
    const fields = { seed: ["too small"], "workload.drift": ["0.after: too small"] };
    const checked = { seed: -3, workload: { drift: [{ after: -1 }] } };
    expect(currentProblems(fields, { ...checked, seed: 3 }, checked)).toEqual({
      "workload.drift": ["0.after: too small"],
    });
    expect(currentProblems(fields, { seed: -3 }, checked)).toEqual({ seed: ["too small"] });
  });
});
