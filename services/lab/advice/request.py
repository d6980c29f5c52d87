"""Answers a request from the dashboard: reads jobs and machines from its files, writes a report."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

from services.lab.advice.answer import headline, make_answer
from services.lab.advice.jobs import GeneratedJobs, Jobs, TraceJobs
from services.lab.advice.measurement import Measurement, Progress, deployed_schedulers
from services.lab.advice.page import write_page
from services.lab.atomic_write import replace_text
from services.lab.experiments.declaration import merged
from services.lab.experiments.runner import Interrupted as Interrupted
from services.lab.traces.problem_report import Report
from shared.messages.advice import PROGRESS, REQUEST, AdviceProgress, AdviceRequest
from shared.platforms.platform_file import find, parse
from shared.runtime.gateway_client import GatewayClient
from shared.store.client import Store

# The dashboard asks about once a second.
WRITE_SECONDS = 0.5


def answer_request(
    folder: Path, gateway: GatewayClient, store: Store, stopping: threading.Event
) -> None:
    request = AdviceRequest.model_validate_json((folder / REQUEST).read_text())
    report = Report()
    jobs = jobs_of(request, folder, report)
    written = 0.0

    def show(progress: Progress) -> None:
        nonlocal written
        if time.monotonic() - written > WRITE_SECONDS:
            written = time.monotonic()
            running = AdviceProgress(state="running", share=progress.share, text=progress.text)
            replace_text(folder / PROGRESS, running.model_dump_json())

    show(Progress(0.0, "starting"))
    budget = request.budget_minutes * 60
    names = request.schedulers or deployed_schedulers(gateway)
    measured = Measurement(jobs, names, budget, gateway, store, show, stopping).measure()
    if stopping.is_set():
        raise Interrupted("the lab was stopped")
    notes = [f"{report.skipped.total():,} lines of the trace were skipped."] * bool(report.skipped)
    answer = make_answer(jobs, measured, platform_name(request), notes)
    write_page(answer, folder, "requested in the dashboard")
    done = AdviceProgress(state="done", share=1.0, headline=headline(answer))
    replace_text(folder / PROGRESS, done.model_dump_json())


def jobs_of(request: AdviceRequest, folder: Path, report: Report) -> Jobs:
    fields: dict[str, Any] = {"objective": request.objective.model_dump()}
    if request.platform_file:
        machines = parse(request.platform_file, "the platform file", folder).spec_fields()
        fields = merged(machines, fields)
    elif request.platform:
        fields = merged(find(request.platform).spec_fields(), fields)
    if request.trace:
        trace = folder / request.trace_name
        trace.write_text(request.trace)
        return TraceJobs(fields, trace, request.load, report=report)
    if request.preset:
        fields = merged(fields, {"workload": {"preset": request.preset}})
    return GeneratedJobs(fields, request.tasks, request.load)


def platform_name(request: AdviceRequest) -> str:
    return (
        "the uploaded platform" if request.platform_file else request.platform or "the default node"
    )
