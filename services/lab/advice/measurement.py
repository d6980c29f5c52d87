"""Runs what has to be run for an answer, within a budget of time.

After some seeds the samples are judged (see `verdict`). A clearly worse scheduler takes part in no
further run. Once the answer is decided, no further seed is run. The rest of the budget is for runs
of the best few schedulers with another load or noise.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from services.lab.advice.jobs import BASE_CASE, Case, Jobs
from services.lab.advice.samples import Samples
from services.lab.advice.verdict import Verdict, judge
from services.lab.experiments.run_completion import wait_until_complete
from services.lab.experiments.runner import Interrupted
from shared.domain.schedulers import FOREST, LEARNERS, ORACLE, REFERENCES
from shared.domain.spec import RunSpec
from shared.runtime.gateway_client import GatewayClient, retry_when_rate_limited
from shared.store.client import Store

# The share of the budget after which no seed is added to the question itself.
SHARE_OF_QUESTION = 0.6
# What would change the answer: other loads, and noise where there is none.
LOAD_FACTORS = (0.5, 1.3)
NOISE = 0.3
# Seeds of each such case, of generated jobs, and how many of the best take part.
CASE_SEEDS, CASE_SCHEDULERS = 3, 4


@dataclass(frozen=True, slots=True)
class Progress:
    share: float  # of the budget
    text: str


@dataclass(frozen=True, slots=True)
class CaseResult:
    case: Case
    samples: Samples
    verdict: Verdict


@dataclass(slots=True)
class Measured:
    samples: Samples
    verdict: Verdict | None = None  # None: the budget did not suffice for two units
    cases: list[CaseResult] = field(default_factory=list)
    not_tried: list[Case] = field(default_factory=list)
    seconds: float = 0.0
    seconds_per_run: float = 0.0  # of the question itself, without the cases
    ended_by: str = "the answer"  # or: the budget, the user, nothing more to vary


class Measurement:
    def __init__(
        self,
        jobs: Jobs,
        schedulers: tuple[str, ...],
        budget_s: float,
        gateway: GatewayClient,
        store: Store,
        report: Callable[[Progress], None],
        stopping: threading.Event,
        first_seed: int = 1,
    ) -> None:
        self._jobs, self._schedulers, self._budget = jobs, schedulers, budget_s
        self._gateway, self._store = gateway, store
        self._report, self._stopping, self._first_seed = report, stopping, first_seed
        self._started = time.monotonic()
        # The next run has the same schedulers or fewer.
        self._last_run = 0.0

    def measure(self) -> Measured:
        measured = Measured(self._no_samples(BASE_CASE))
        try:
            try:
                self._answer(measured)
            finally:
                runs = max(len(measured.samples.runs), 1)
                measured.seconds_per_run = (time.monotonic() - self._started) / runs
            if measured.verdict is not None:
                self._vary(measured, measured.verdict)
        except _BudgetEnded:
            measured.ended_by = "the user" if self._stopping.is_set() else "the budget"
            measured.verdict = measured.verdict or self._judged(measured.samples)
        measured.seconds = time.monotonic() - self._started
        return measured

    def _answer(self, measured: Measured) -> None:
        samples, jobs = measured.samples, self._jobs
        excluded: frozenset[str] = frozenset()
        for look in jobs.looks:
            names = tuple(name for name in self._schedulers if name not in excluded)
            if samples.runs:  # the references are needed once
                names = tuple(name for name in names if name not in REFERENCES)
            if samples.runs and not self._would_differ(names):
                measured.ended_by = "nothing more to vary"
                return
            for seed in range(len(samples.seeds), look):
                if samples.runs and self._would_exceed(SHARE_OF_QUESTION):
                    measured.ended_by = "the budget"
                    break
                self._run(BASE_CASE, self._first_seed + seed, names, samples)
            measured.verdict = self._judged(samples, excluded)
            if measured.ended_by == "the budget" or measured.verdict is None:
                return
            excluded = frozenset(measured.verdict.named("worse"))
            if measured.verdict.decided:
                return
        measured.ended_by = "the most seeds"

    def _judged(self, samples: Samples, excluded: frozenset[str] = frozenset()) -> Verdict | None:
        values = {name: samples.of(name, "objective") for name in samples.competitors}
        if not values or max(map(len, values.values())) < 2:
            return None
        return judge(values, len(self._jobs.looks), excluded)

    def _would_differ(self, names: tuple[str, ...]) -> bool:
        """Whether another seed can give other results: of fixed jobs without noise, only where a
        scheduler draws random numbers itself."""
        noise = self._jobs.spec(BASE_CASE, 1, names).physics.noise
        generated = self._jobs.stretch == self._jobs.tasks
        return generated or noise != 0 or any(n in LEARNERS or n == "random" for n in names)

    def _vary(self, measured: Measured, verdict: Verdict) -> None:
        order = [verdict.recommended, *verdict.named("best"), *verdict.named("unknown")]
        order += [each.scheduler for each in verdict.compared]
        names = tuple(dict.fromkeys(order))[: max(CASE_SCHEDULERS, 1)]
        measured.not_tried = self._cases()
        while measured.not_tried:
            case = measured.not_tried[0]
            samples = self._no_samples(case)
            for seed in range(CASE_SEEDS if self._jobs.looks[0] > 1 else 1):
                if self._would_exceed(1.0):
                    raise _BudgetEnded
                self._run(case, self._first_seed + seed, names, samples)
            case_verdict = self._judged(samples)
            del measured.not_tried[0]
            if case_verdict is not None:
                measured.cases.append(CaseResult(case, samples, case_verdict))

    def _cases(self) -> list[Case]:
        load = self._jobs.load
        cases = []
        if load is not None:
            cases = [Case(f"load {load * each:.2g}", load_factor=each) for each in LOAD_FACTORS]
        noisy = self._jobs.spec(BASE_CASE, 1, ()).physics.noise != 0
        noise = 0.0 if noisy else NOISE
        return [*cases, Case(f"noise {noise:.0%}", noise=noise)]

    def _no_samples(self, case: Case) -> Samples:
        spec = self._jobs.spec(case, self._first_seed, ())
        return Samples(spec, by_unit=self._jobs.stretch == self._jobs.tasks)

    def _would_exceed(self, share: float) -> bool:
        spent = time.monotonic() - self._started
        return spent + self._last_run > share * self._budget

    def _run(self, case: Case, seed: int, names: tuple[str, ...], samples: Samples) -> None:
        """One run; with the Oracle if a scheduler learns from it."""
        if FOREST in names and ORACLE not in names:
            names = (*names, ORACLE)
        started = time.monotonic()
        spec = self._jobs.spec(case, seed, names)
        label = " ".join(filter(None, (case.label, f"seed {seed}")))

        def watch(processed: int, note: str = "") -> None:
            share = min((time.monotonic() - self._started) / self._budget, 1.0)
            text = f"{label}: {processed:,} of {self._jobs.tasks:,} tasks, {len(names)} schedulers"
            self._report(Progress(share, f"{text} ({note})" if note else text))

        run = self._start(spec)
        try:
            self._jobs.send(self._gateway, run, case, watch)
            record = wait_until_complete(self._gateway, run, watch, self._pause)
        except BaseException:
            self._gateway.post("/api/simulation/stop", run=run)
            raise
        samples.add(self._store, record, seed, self._jobs.stretch)
        self._last_run = time.monotonic() - started

    def _start(self, spec: RunSpec) -> str:
        data = spec.model_dump(mode="json")
        record = retry_when_rate_limited(lambda: self._gateway.post("/api/runs", data), self._pause)
        return str(record["run"])

    def _pause(self, seconds: float) -> None:
        if self._stopping.wait(seconds):
            raise _BudgetEnded
        if time.monotonic() - self._started > self._budget:
            raise _BudgetEnded


def deployed_schedulers(gateway: GatewayClient) -> tuple[str, ...]:
    return tuple(each["name"] for each in gateway.get("/api/schedulers") if each["deployed"])


class _BudgetEnded(Interrupted):
    """The time is over, or the user has interrupted."""
