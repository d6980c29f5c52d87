"""Metric settings that several services share."""

from __future__ import annotations

# Seconds: a live pace is in the tens of milliseconds, a backlog in minutes.
LATENCY_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
