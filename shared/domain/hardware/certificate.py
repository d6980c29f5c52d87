"""How far simulations of a platform were from real runs on it: the figures of its certificate.

`hybrid validate` measures them; a run on the platform carries them in its spec, so that every
report can say how far its figures are to be trusted.
"""

from __future__ import annotations

from pydantic import Field

from shared.domain.spec_model import NonNegative, SpecModel


class Error(SpecModel):
    """The error of simulated figures, relative to the real ones."""

    median: NonNegative
    p90: NonNegative
    spread: NonNegative = Field(
        description="median of what repeated real runs differ from their mean: no simulation can "
        "be better"
    )
    beyond: NonNegative = Field(description="median of what the error is larger than the spread")


class Certificate(SpecModel):
    platform: str
    platform_hash: str = Field(description="of the platform's devices, physics and times")
    made_at: str
    workloads: int = Field(ge=1)
    repeats: int = Field(ge=1, description="real runs of each workload")
    task_time: Error
    turnaround: Error = Field(description="mean turnaround of a scheduler's tasks")
    makespan: Error
    kendall_tau: float | None = Field(
        ge=-1, le=1, description="mean agreement of the schedulers' order by mean turnaround"
    )
    pairs: int = Field(
        ge=0, description="of schedulers whose real runs differ by more than their repetitions"
    )
    pairs_kept: int = Field(ge=0, description="of them in the same order in the simulation")

    @property
    def line(self) -> str:
        """In one line, for reports and screens."""
        tau = "" if self.kendall_tau is None else f", Kendall's tau {self.kendall_tau:.2f}"
        return (
            f"validated on {self.workloads} workloads at {self.made_at[:10]}: median error of "
            f"makespan {self.makespan.median:.1%} (repeated real runs {self.makespan.spread:.1%}), "
            f"of mean turnaround {self.turnaround.median:.1%} ({self.turnaround.spread:.1%}), of "
            f"task times {self.task_time.median:.1%} ({self.task_time.spread:.1%}); order of "
            f"schedulers kept in {self.pairs_kept} of {self.pairs} pairs{tau}"
        )


NO_CERTIFICATE = "no certificate: simulations of this platform were never compared with real runs"
