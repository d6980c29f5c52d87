"""The jobs that advice is asked about: generated ones, or those of a trace.

Both are run several times. What differs between the runs, and so what the intervals are about:

- generated jobs: every seed gives other jobs of the same kind. Each seed is one unit of comparison.
- a trace: the jobs are fixed. Its results are cut into stretches of equally many consecutive jobs
  (batch means), and each stretch is one unit; another seed draws other noise and gives learners
  another start, and a stretch counts the mean of its replays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from services.lab.experiments.arrival_load import at_load
from services.lab.experiments.declaration import REPEATABLE, merged
from services.lab.traces import replay
from services.lab.traces.mapping import Mapping
from services.lab.traces.problem_report import Report
from services.lab.traces.trace import Trace, detect
from shared.domain.spec import RunSpec
from shared.domain.tasks import Tasks
from shared.runtime.gateway_client import GatewayClient

# Units of a trace: enough for an interval, and few enough that one hardly depends on the next.
STRETCHES = 12
# Learners are pre-trained on jobs like this first part of a trace: a user would have such a past.
PRETRAIN_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class Case:
    """A changed question, to see what would change the answer."""

    label: str = ""
    load_factor: float = 1.0
    noise: float | None = None

    def fields(self) -> dict[str, Any]:
        return {} if self.noise is None else {"physics": {"noise": self.noise}}


BASE_CASE = Case()


class Jobs(Protocol):
    tasks: int
    looks: tuple[int, ...]  # numbers of seeds after which the samples are judged

    @property
    def description(self) -> str: ...

    @property
    def load(self) -> float | None:
        """The load offered to the cluster; None: all jobs arrive at once."""

    @property
    def stretch(self) -> int:
        """Tasks of one unit."""

    def spec(self, case: Case, seed: int, schedulers: tuple[str, ...]) -> RunSpec: ...

    def send(
        self, gateway: GatewayClient, run: str, case: Case, watch: Callable[[int], None]
    ) -> None:
        """Submit the tasks that the run does not generate itself."""


class GeneratedJobs:
    looks: tuple[int, ...] = (4, 8, 16, 32)

    def __init__(self, fields: dict[str, Any], tasks: int, load: float | None) -> None:
        self.tasks = tasks
        self._fields = merged(merged(REPEATABLE, fields), {"tasks": tasks})
        spec = RunSpec.parse(self._fields).without_noise
        self._load = spec.workload.arrival_rate / at_load(spec, 1.0).workload.arrival_rate
        if load is not None:
            self._load = load

    @property
    def description(self) -> str:
        preset = RunSpec.parse(self._fields).workload.preset
        return f"generated jobs (preset {preset}), {self.tasks:,} in each run"

    @property
    def load(self) -> float | None:
        return self._load

    @property
    def stretch(self) -> int:
        return self.tasks

    def spec(self, case: Case, seed: int, schedulers: tuple[str, ...]) -> RunSpec:
        own = {"seed": seed, "schedulers": list(schedulers), "name": f"advice {case.label}".strip()}
        spec = RunSpec.parse(merged(self._fields, case.fields() | own))
        # By expected times: noise must not change when jobs arrive.
        loaded = at_load(spec.without_noise, self._load * case.load_factor)
        return spec.model_copy(update={"workload": loaded.workload})

    def send(
        self, gateway: GatewayClient, run: str, case: Case, watch: Callable[[int], None]
    ) -> None:
        """Nothing: the run generates its tasks."""


class TraceJobs:
    looks: tuple[int, ...] = (1, 2, 4)

    def __init__(
        self,
        fields: dict[str, Any],
        path: Path,
        load: float | None,
        *,
        format: str | None = None,
        mapping: Mapping | None = None,
        report: Report | None = None,
        limit: int | None = None,
    ) -> None:
        self._path, self._load, self._limit = path, load, limit
        self._format, self._mapping = format or detect(path), mapping or Mapping()
        mark = replay.fingerprint(path, self._format, self._mapping, limit, load)
        self._fields = replay.run_spec(merged({"pace": "max"}, fields), path, mark)
        self._trace = self._opened(report or Report())
        self.tasks = self._trace.survey().tasks
        replay.stretch(self._trace, load)  # an impossible load is an error now

    def _opened(self, report: Report, limit: int | None = None) -> Trace:
        spec = RunSpec.parse(self._fields)
        return Trace(
            self._path, report, format=self._format, mapping=self._mapping, spec=spec,
            limit=limit or self._limit,
        )  # fmt: skip

    @property
    def description(self) -> str:
        return f"the {self.tasks:,} jobs of {self._path.name}, as they were recorded"

    @property
    def load(self) -> float | None:
        offered = self._trace.survey().load
        return self._load if self._load is not None or offered is None else offered.cluster

    @property
    def stretch(self) -> int:
        return -(-self.tasks // STRETCHES)

    def spec(self, case: Case, seed: int, schedulers: tuple[str, ...]) -> RunSpec:
        own = {"seed": seed, "schedulers": list(schedulers)}
        return RunSpec.parse(merged(self._completed, case.fields() | own))

    @cached_property
    def _completed(self) -> dict[str, Any]:
        part = self._opened(Report(), max(round(PRETRAIN_SHARE * self.tasks), 1))
        first = replay.first_part(replay.rescaled(part.batches(), self._factor(BASE_CASE)))
        return replay.complete_spec(self._fields, self._trace, first)

    def _factor(self, case: Case) -> float:
        return replay.stretch(self._trace, self._load) / case.load_factor

    def _batches(self, case: Case) -> Iterator[Tasks]:
        return replay.rescaled(self._opened(Report()).batches(), self._factor(case))

    def send(
        self, gateway: GatewayClient, run: str, case: Case, watch: Callable[[int], None]
    ) -> None:
        sender = replay.Replay(
            gateway, run, pace=None, watch=lambda progress: watch(progress.next_task)
        )
        sender.send(self._batches(case))
