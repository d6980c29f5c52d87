"""The figures that a report shows of each scheduler, with their names and units."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """A figure of a scheduler: stored in the outcomes, or derived from them."""

    name: str
    unit: str = "s"
    derived: bool = False
    is_ratio: bool = False  # a geometric mean over seeds

    @property
    def header(self) -> str:
        return f"{self.name} ({self.unit})" if self.unit else self.name


def _multiple(name: str) -> Column:
    return Column(name, "", derived=True, is_ratio=True)


COLUMNS = {
    "avg_turnaround": Column("Mean turnaround"),
    "p95_turnaround": Column("p95 turnaround"),
    "p99_turnaround": Column("p99 turnaround"),
    "over_clairvoyant": _multiple("× clairvoyant"),  # mean turnaround
    "avg_slowdown": Column("Slowdown", ""),
    "avg_wait": Column("Mean wait"),
    "avg_time": Column("Time per task"),
    "total_time": Column("Total time"),
    "over_oracle": _multiple("× Oracle"),  # total time
    "regret": Column("Regret", derived=True),  # seconds of execution more than the Oracle
    "speedup": _multiple("Speed-up"),  # total time of the baseline over its own
    "gpu_share": Column("Share on accelerators", ""),
    "makespan": Column("Makespan"),
    "arrival_bound": Column("Arrival bound"),
    "over_bound": _multiple("× bound"),  # makespan
    "over_critical_path": _multiple("× critical path"),  # makespan
    "total_energy": Column("Energy", "J"),
    "energy_with_idle": Column("With idle power", "J"),
    "total_cost": Column("Cost", "$"),
}
