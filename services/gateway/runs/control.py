"""Starts, pauses, resumes and stops runs, and finds the run that a request means."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from services.gateway.runs.schemas import SpecCheck
from shared.bus import suspension
from shared.bus.run_book import RunBook
from shared.bus.service import Service
from shared.domain.spec import RunSpec
from shared.domain.spec_parts.learning_spec import Objective
from shared.errors import NotFound, SpecError, Unavailable
from shared.execution.settings import settings_of
from shared.messages import subjects
from shared.messages.events import Event, ServiceReport
from shared.messages.runs import Fork, RunRecord, RunState

SLOW_ROLL_CALL_SECONDS = 2.0


class RunControl:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._bus = service.bus

    @property
    def run_book(self) -> RunBook:
        return self._service.runs

    async def start(self, data: Any) -> RunRecord:
        """Start a run from a spec as plain data. Default schedulers: all that are deployed."""
        spec, deployed = await self._complete(data)
        learners = [name for name in spec.schedulers if deployed[name] == name]
        record = await self.run_book.create(spec, learners)
        names = ", ".join(spec.schedulers)
        await self._publish_event(record, f"run {record.run} started with {names}")
        return record

    async def branch(self, spec: RunSpec, make_fork: Callable[[dict[str, str]], Fork]) -> RunRecord:
        """Start a fork, which is made for the learners that are deployed."""
        spec, deployed = await self._complete(spec.model_dump(mode="json"))
        learners = [name for name in spec.schedulers if deployed[name] == name]
        fork = make_fork(deployed)
        record = await self.run_book.create(spec, learners, fork)
        changes = f" with {', '.join(fork.changes)}" if fork.changes else ""
        note = f"run {record.run} forked from run {fork.run} at task {fork.at}{changes}"
        await self._publish_event(record, note)
        return record

    async def check(self, data: Any) -> SpecCheck:
        """Whether `start` would accept the spec; changes nothing."""
        try:
            spec, _ = await self._complete(data)
        except (SpecError, Unavailable) as error:
            problems = error.problems if isinstance(error, SpecError) else [str(error)]
            return SpecCheck(ok=False, problems=problems, spec=None)
        return SpecCheck(ok=True, problems=[], spec=spec)

    async def _complete(self, data: Any) -> tuple[RunSpec, dict[str, str]]:
        """The spec with its schedulers, and the learner of each scheduler that is deployed."""
        spec = RunSpec.parse(data)
        deployed = await self._deployed(spec.schedulers)
        if not spec.schedulers:
            if not deployed:
                raise Unavailable("no scheduler answers: deploy at least one worker")
            spec = spec.model_copy(update={"schedulers": tuple(deployed)})
        if spec.real:
            await self._check_real(spec)
        missing = [name for name in spec.schedulers if name not in deployed]
        if missing:
            names = ", ".join(deployed) or "none"
            raise SpecError([f"schedulers: {', '.join(missing)} not deployed; deployed: {names}"])
        return spec, deployed

    async def _check_real(self, spec: RunSpec) -> None:
        """Whether an executor is there, and the devices are described as it understands it."""
        for device in spec.cluster.devices:
            settings_of(device.real.explicit_fields() if device.real else {}, device.count)
        reports = await self._bus.roll_call()
        if not any(report.service == "executor" for report in reports):
            raise Unavailable(
                "no executor answers: a real run needs one (hybrid up starts it; with Docker "
                "Compose: --profile real)"
            )

    async def _deployed(self, expected: Collection[str]) -> dict[str, str]:
        """The schedulers that answer a roll call, each with its learner; not all of them if those
        that are expected have answered. If more workers pull or decide tasks than have answered, a
        second call waits longer for them: no worker answers while its policy decides."""
        names = _schedulers(await self._bus.roll_call(schedulers=expected))
        if expected and names.keys() >= set(expected):
            return dict(sorted(names.items()))
        working = {
            info.name
            for info in await self._bus.jetstream.consumers_info(subjects.TASKS)
            if info.num_waiting or info.num_ack_pending
        }
        if working - {subjects.RECORDER_DURABLE, *map(subjects.scheduler_durable, names)}:
            names |= _schedulers(await self._bus.roll_call(SLOW_ROLL_CALL_SECONDS))
        return dict(sorted(names.items()))

    async def change_state(self, run: str | None, state: RunState) -> RunRecord:
        record = await self.resolve(run, active=True)
        changed = await self.run_book.change_state(record.run, state)
        await self._publish_event(changed, f"run {record.run} is {state}")
        return changed

    async def set_objective(self, run: str, objective: Objective) -> RunRecord:
        """What the learners of a running run minimise from now on."""
        record = await self.run_book.set_objective(run, objective)
        weights = ", ".join(f"{name} {weight:g}" for name, weight in objective)
        await self._publish_event(record, f"run {run}: its learners now minimise {weights}")
        return record

    async def retry(self, run: str, scheduler: str) -> RunRecord:
        return await suspension.retry(self._bus, self.run_book, run, scheduler)

    async def leave_out(self, run: str, scheduler: str) -> RunRecord:
        return await suspension.leave_out(self._bus, self.run_book, run, scheduler)

    async def resolve(self, run: str | None, *, active: bool = False) -> RunRecord:
        """The run with this id; without an id the newest active run, else the newest."""
        if run is not None:
            return await self.run_book.get(run)
        records = await self.run_book.refresh()
        running = [record for record in records if record.active]
        if running:
            return running[-1]
        if active or not records:
            raise NotFound("no active run" if active else "no run yet")
        return records[-1]

    async def resolve_if_any(self, run: str | None) -> RunRecord | None:
        """Like `resolve`, but None where no id is given and there is no run yet."""
        try:
            return await self.resolve(run)
        except NotFound:
            if run is not None:
                raise
            return None

    async def _publish_event(self, record: RunRecord, message: str) -> None:
        event = Event(kind="run", service=self._bus.service, run=record.run, message=message)
        stamp = f"{record.state}.{record.updated_at}"
        await self._bus.publish_event(event, message_id=f"event.run.{record.run}.{stamp}")


def competing(record: RunRecord, scheduler: str) -> str:
    """The scheduler's name, if it takes part in the run."""
    if scheduler not in record.spec.schedulers:
        names = ", ".join(record.spec.schedulers)
        raise NotFound(f"{scheduler} does not take part in run {record.run}: {names} do")
    return scheduler


def _schedulers(reports: list[ServiceReport]) -> dict[str, str]:
    """Each scheduler's learner; empty: it does not learn."""
    return {report.scheduler: report.learner for report in reports if report.service == "scheduler"}
