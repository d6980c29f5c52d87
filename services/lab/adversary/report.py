"""What the adversary found: the matrix, the instances as specs, HTML, PDF and JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from services.lab.adversary.search import Pair, SearchResult
from services.lab.adversary.space import Space
from services.lab.reports.document import Block, Document, Section, Table, Text
from services.lab.reports.formatting import labelled, number
from services.lab.reports.report import write_document
from shared.domain.schedulers import FOREST, ORACLE
from shared.domain.spec import RunSpec


def write_report(
    result: SearchResult,
    space: Space,
    names: tuple[str, ...],
    measure: str,
    folder: Path,
    command: str,
) -> list[Path]:
    instances = {pair: _instance(result, space, pair, measure) for pair in result.best}
    (folder / "instances").mkdir(parents=True, exist_ok=True)
    for pair, each in instances.items():
        file = folder / "instances" / f"{pair[0]}-{pair[1]}.yaml"
        file.write_text(yaml.safe_dump(each["spec"], sort_keys=False))
    data = {
        "kind": "adversary",
        "title": "Adversary",
        "measure": measure,
        "schedulers": list(names),
        "evaluations": result.evaluations,
        "seconds": round(result.seconds, 1),
        "pairs": [
            {"victim": pair[0], "rival": pair[1], **each} for pair, each in instances.items()
        ],
    }
    return write_document(_document(result, names, measure, command), data, [], folder, "report")


def instance_spec(spec: RunSpec, pair: Pair) -> dict[str, Any]:
    """The spec of a run of the instance, without fields that have their default."""
    teacher = (ORACLE,) if FOREST in pair and ORACLE not in pair else ()
    complete = json.loads(spec.model_dump_json(exclude_defaults=True))
    return {
        "name": f"adversary: {pair[0]} against {pair[1]}",
        **{key: value for key, value in complete.items() if key not in ("name", "schedulers")},
        "schedulers": [*pair, *teacher],
    }


def _instance(result: SearchResult, space: Space, pair: Pair, measure: str) -> dict[str, Any]:
    instance = result.best[pair]
    return {
        "ratio": instance.ratio(pair),
        measure: {name: instance.values[name] for name in pair},
        "shrunk": pair in result.shrunk,
        "point": instance.point,
        "spec": instance_spec(space.spec_of(instance.point), pair),
    }


def _document(result: SearchResult, names: tuple[str, ...], measure: str, command: str) -> Document:
    pairs = sorted(result.best, key=lambda pair: -result.best[pair].ratio(pair))
    runs = sum(result.evaluations.values())
    worst = pairs[0] if pairs else None
    summary = []
    if worst:
        summary.append(
            f"The largest loss found: {worst[0]} has {number(result.ratio(worst))} times the "
            f"{measure} of {worst[1]}."
        )
    unbeaten = [name for name in names if all((result.ratio((name, r)) or 0) <= 1 for r in names)]
    if unbeaten:
        summary.append(
            f"No instance was found on which {', '.join(unbeaten)} loses to another scheduler."
        )
    summary.append(
        "A ratio is the largest that was found, not an upper bound: a longer search may find a "
        "larger one. Schedulers with few runs were searched less."
    )
    matrix: list[Block] = [
        Table(
            ["victim", *(str(column) for column, _ in enumerate(names, 1))],
            [
                [f"{row} {labelled(victim)}", *(_cell(result, (victim, rival)) for rival in names)]
                for row, victim in enumerate(names, 1)
            ],
        ),
        Text(
            f"The {measure} of the victim (row) divided by that of the rival (column, under the "
            "number of its row), on the worst instance that was found for the pair."
        ),
    ]
    return Document(
        title="Adversary: where schedulers lose",
        question=f"On which instances does a scheduler lose most to another, by {measure}?",
        byline=f"{runs:,} runs in {result.seconds / 60:.1f} minutes.",
        summary=summary,
        sections=[
            Section("Matrix" if len(names) > 2 else "Ratio", matrix),
            Section("Instances", [_listing(result, pairs, names)]),
            Section("Runs", [_evaluations(result)]),
            Section("Command", [Text(command, "code")]),
        ],
    )


def _cell(result: SearchResult, pair: Pair) -> str:
    ratio = result.ratio(pair)
    return "" if ratio is None else number(ratio, 2 if ratio < 10 else 1)


def _listing(result: SearchResult, pairs: list[Pair], names: tuple[str, ...]) -> Table:
    """The worst instance of each victim, against any rival."""
    worst: dict[str, Pair] = {}
    for pair in pairs:
        worst.setdefault(pair[0], pair)
    rows = []
    for pair in [worst[name] for name in names if name in worst]:
        point = result.best[pair].point
        devices = f"{point['cpus']:.0f} CPU, {point['gpus']:.0f} GPU" if "cpus" in point else ""
        rows.append(
            [*pair, number(result.ratio(pair)), f"{point['tasks']:.0f}", devices,
             f"{point['load']:.2f}", f"instances/{pair[0]}-{pair[1]}.yaml"]
        )  # fmt: skip
    headers = ["Victim", "Rival", "Ratio", "Tasks", "Devices", "Load", "File"]
    return Table(headers, rows, text_columns=(0, 1, 4, 6))


def _evaluations(result: SearchResult) -> Table:
    rows = [[name, f"{count:,}"] for name, count in result.evaluations.items()]
    return Table(["Scheduler", "Runs"], rows)
