"""The certificate of a platform: summary, tables by kernel, device and scheduler, and every run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from services.lab.experiments import provenance
from services.lab.validation.agreement import Figure, bias_of, error_of, figures_of, order_of
from services.lab.validation.run_results import TaskTime
from services.lab.validation.validator import Compared
from shared.domain.hardware.certificate import Certificate
from shared.platforms.certificate_file import platform_hash
from shared.platforms.platform_file import PlatformFile

MEASURES = ("turnaround", "makespan")


def make_certificate(platform: PlatformFile, compared: Sequence[Compared]) -> dict[str, Any]:
    """The contents of the file."""
    comparisons = [each.comparison for each in compared]
    schedulers = sorted(comparisons[0].simulated)
    by_task = _figures_of_tasks(compared)
    by_measure = {
        measure: {name: figures_of(comparisons, measure, name) for name in schedulers}
        for measure in MEASURES
    }
    errors = {
        measure: error_of([figure for name in schedulers for figure in by_measure[measure][name]])
        for measure in MEASURES
    }
    order = order_of(comparisons)
    summary = Certificate(
        platform=platform.name,
        platform_hash=platform_hash(platform),
        made_at=provenance.now(),
        workloads=len(compared),
        repeats=len(comparisons[0].real),
        task_time=error_of([figure for figures in by_task.values() for figure in figures]),
        turnaround=errors["turnaround"],
        makespan=errors["makespan"],
        kendall_tau=order.kendall_tau,
        pairs=order.pairs,
        pairs_kept=order.kept,
    )
    return {
        "summary": summary.model_dump(),
        "task_times": [
            {"kind": kind, "type": type_, "tasks": len(figures), **_row(figures)}
            for (kind, type_), figures in sorted(by_task.items())
        ],
        "schedulers": [
            {"scheduler": name, "measure": measure, **_row(by_measure[measure][name])}
            for measure in MEASURES
            for name in schedulers
        ],
        "workloads": [_workload(each) for each in compared],
        "machine": provenance.machine(),
        "commit": provenance.commit(),
    }


def _row(figures: Sequence[Figure]) -> dict[str, float]:
    return {"bias": bias_of(figures), **error_of(figures).model_dump()}


def _figures_of_tasks(compared: Sequence[Compared]) -> dict[tuple[str, str], list[Figure]]:
    """By kernel and device type: each task that all real runs put on the same device."""
    times: dict[tuple[Any, ...], list[TaskTime]] = {}
    for number, each in enumerate(compared):
        for run in each.times:
            for task in run:
                key = (number, task.scheduler, task.task_id, task.type)
                times.setdefault(key, []).append(task)
    figures: dict[tuple[str, str], list[Figure]] = {}
    repeats = len(compared[0].times)
    for same in times.values():
        if len(same) < repeats:
            continue
        figure = Figure(same[0].predicted, [task.measured for task in same])
        figures.setdefault((same[0].kind, same[0].type), []).append(figure)
    return figures


def _workload(each: Compared) -> dict[str, Any]:
    spec = each.workload.simulated
    return {
        "seed": spec.seed,
        "tasks": spec.tasks,
        "load": each.workload.load,
        "arrival_rate": spec.workload.arrival_rate,
        "real_runs": each.runs,
        "schedulers": {
            name: {
                "simulated": asdict(simulated),
                "real": [asdict(real[name]) for real in each.comparison.real],
            }
            for name, simulated in each.comparison.simulated.items()
        },
    }
