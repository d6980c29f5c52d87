import { describe, expect, it } from "vitest";
import {
  count,
  dollars,
  joules,
  megabytes,
  number,
  overOracle,
  percent,
  perSecond,
  seconds,
  shortCount,
  tickCount,
} from "./format";

describe("numbers", () => {
  it("keep three significant digits and the integer part", () => {
    expect(number(1.23456)).toBe("1.23");
    expect(number(0.0123456)).toBe("0.0123");
    expect(number(123456.7)).toBe("123,457");
    expect(number(0)).toBe("0");
    expect(number(-2.5)).toBe("−2.50");
  });

  it("are a dash when missing", () => {
    expect([number(null), seconds(undefined), dollars(NaN), percent(Infinity)]).toEqual(["–", "–", "–", "–"]);
  });

  it("count with thousands separators", () => {
    expect(count(1234567)).toBe("1,234,567");
    expect(shortCount(9999)).toBe("9,999");
    expect(shortCount(12345)).toBe("12.3 k");
    expect(shortCount(999600)).toBe("1.00 M");
    expect(shortCount(2.5e9)).toBe("2.50 G");
  });
});

describe("ticks of an axis", () => {
  it("are as short as a round number can be", () => {
    expect([0, 500, 12000].map(tickCount)).toEqual(["0", "500", "12,000"]);
    expect([100_000, 150_000, 2_000_000, 2_500_000].map(tickCount)).toEqual(["100 k", "150 k", "2 M", "2.5 M"]);
  });
});

describe("time", () => {
  it("picks the unit by size", () => {
    expect(seconds(0)).toBe("0 s");
    expect(seconds(1.4e-17)).toBe("0 s");
    expect(seconds(6.4e-14)).toBe("0 s");
    expect(seconds(2.5e-8)).toBe("25.0 ns");
    expect(seconds(0.0000421)).toBe("42.1 µs");
    expect(seconds(0.0421)).toBe("42.1 ms");
    expect(seconds(1.5)).toBe("1.50 s");
    expect(seconds(59.9)).toBe("59.9 s");
    expect(seconds(61)).toBe("1 min 01 s");
    expect(seconds(7265)).toBe("2 h 01 min");
    expect(seconds(3 * 86400)).toBe("3 d 00 h");
  });

  it("rounds up to the next unit", () => {
    expect(seconds(0.99996)).toBe("1.00 s");
    expect(seconds(0.00099996)).toBe("1.00 ms");
    expect(seconds(59.96)).toBe("1 min 00 s");
    expect(seconds(3599.7)).toBe("1 h 00 min");
  });
});

describe("energy, money and memory", () => {
  it("scale joules", () => {
    expect(joules(0.5)).toBe("500 mJ");
    expect(joules(12.34)).toBe("12.3 J");
    expect(joules(45678)).toBe("45.7 kJ");
    expect(joules(3.6e6)).toBe("3.60 MJ");
  });

  it("go down to micro-dollars", () => {
    expect(dollars(0.0000123)).toBe("12.3 µ$");
    expect(dollars(0.00421)).toBe("4,210 µ$");
    expect(dollars(0.0421)).toBe("$0.0421");
    expect(dollars(1234.5)).toBe("$1,234.50");
    expect(dollars(-2)).toBe("−$2.00");
  });

  it("turn megabytes into gigabytes", () => {
    expect(megabytes(81)).toBe("81.0 MB");
    expect(megabytes(8000)).toBe("8.00 GB");
  });
});

describe("shares and ratios", () => {
  it("are percentages", () => {
    expect(percent(0.5)).toBe("50.0 %");
    expect(percent(0.0123)).toBe("1.23 %");
    expect(percent(0)).toBe("0.0 %");
    expect(percent(0.256, 0)).toBe("26 %");
  });

  it("relative to the Oracle are differences", () => {
    expect(overOracle(1.25)).toBe("+25.0 %");
    expect(overOracle(1.0123)).toBe("+1.23 %");
    expect(overOracle(0.9)).toBe("−10.0 %");
    expect(overOracle(1.00001)).toBe("±0 %");
    expect(overOracle(25)).toBe("25.0×");
  });

  it("are rates", () => {
    expect(perSecond(20)).toBe("20.0/s");
    expect(perSecond(12500)).toBe("12.5 k/s");
  });
});
