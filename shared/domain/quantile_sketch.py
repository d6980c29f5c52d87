"""Quantiles of all values of a run in a few kilobytes: a histogram whose counts are exact.

A bucket is what floats share whose exponent and first six bits of the mantissa are equal, so it is
found by a shift, is the same on every machine, and is at most 1/64 wide: a quantile is the middle
of its bucket, off by at most 0.8 %. Values below SMALLEST count as that, which keeps the number of
buckets small. ClickHouse finds the same bucket with BUCKET_SQL.
"""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass, field

import numpy as np

from shared.domain.tasks import Floats, Integers

SHIFT = 52 - 6
SMALLEST = 2.0**-30  # about a nanosecond
BUCKET_SQL = f"bitShiftRight(reinterpretAsInt64(greatest({{column}}, {SMALLEST!r})), {SHIFT})"


@dataclass(slots=True)
class QuantileSketch:
    """Counts numbers that are 0 or more in buckets, for their quantiles."""

    first: int = 0  # number of the first bucket
    counts: Integers = field(default_factory=lambda: np.zeros(0, np.int64))

    def add(self, values: Floats) -> QuantileSketch:
        """A new sketch that has these values too."""
        if len(values) == 0:
            return self
        bucket = np.maximum(values, SMALLEST).view(np.int64) >> SHIFT
        first = int(bucket.min())
        return self.merge(QuantileSketch(first, np.bincount(bucket - first)))

    def merge(self, other: QuantileSketch) -> QuantileSketch:
        """A new sketch of the values of both."""
        if len(self.counts) == 0 or len(other.counts) == 0:
            return other if len(self.counts) == 0 else self
        first = min(self.first, other.first)
        end = max(self.first + len(self.counts), other.first + len(other.counts))
        counts = np.zeros(end - first, np.int64)
        for each in (self, other):
            start = each.first - first
            counts[start : start + len(each.counts)] += each.counts
        return QuantileSketch(first, counts)

    def quantiles(self, *shares: float) -> list[float]:
        """The value below which each share of the values lies; 0 without values."""
        if len(self.counts) == 0:
            return [0.0] * len(shares)
        below = np.cumsum(self.counts)
        ranks = [max(int(np.ceil(share * below[-1])), 1) for share in shares]
        bucket = self.first + np.searchsorted(below, ranks)
        edges = np.stack((bucket, bucket + 1)) << SHIFT
        low, high = edges.astype(np.int64).view(np.float64)
        return [float(middle) for middle in (low + high) / 2]

    def to_json(self) -> dict[str, object]:
        counts = zlib.compress(self.counts.astype("<u8").tobytes(), 1)
        return {"first": self.first, "counts": base64.b64encode(counts).decode()}

    @classmethod
    def from_json(cls, data: dict[str, object]) -> QuantileSketch:
        counts = zlib.decompress(base64.b64decode(str(data["counts"])))
        return cls(int(str(data["first"])), np.frombuffer(counts, "<u8").astype(np.int64))
