"""How the results were obtained: the simulation's rules, the statistics, machine and command."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import yaml
from jinja2 import Environment, StrictUndefined

from services.lab.experiments.tables import RECOVERY_WINDOW
from services.lab.reports.document import Block, Table, Text
from services.lab.reports.formatting import NEAR_ORACLE, counted, listed, number
from services.lab.reports.html import TEMPLATES
from services.lab.reports.study import Study
from shared.domain.hardware.certificate import NO_CERTIFICATE
from shared.domain.hardware.cluster_spec import SHORT_FORM
from shared.domain.hardware.platform import Platform

MOST_KINDS = 8


def methods(study: Study) -> list[Block]:
    """The paragraphs of methods.txt, with the device types as a table."""
    experiment, spec = study.experiment, study.first_spec
    platform, measured = spec.platform, spec.platform.measured
    kinds = list(measured.kinds if measured else ())
    outside = study.tables["workload"].column("extrapolated").to_pylist()
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {
        "count": counted,
        "listed": listed,
        "number": number,
        "g": "{:g}".format,
    }
    text = environment.from_string((TEMPLATES / "methods.txt").read_text(encoding="utf-8")).render(
        experiment=experiment,
        seeds=study.seeds,
        missing=sorted(set(experiment.seeds) - set(study.seeds)),
        physics=spec.physics,
        certificate=spec.certificate.line if spec.certificate else NO_CERTIFICATE,
        load=experiment.load or any(each.load for each in experiment.variants.values()),
        measured=measured,
        kinds=[*kinds[:MOST_KINDS], *(["more"] if len(kinds) > MOST_KINDS else [])],
        extrapolated=100 * sum(map(bool, outside)) / max(len(outside), 1),
        nodes=len(platform.node_names),
        network=spec.cluster.network,
        near_oracle=NEAR_ORACLE,
        recovery_window=RECOVERY_WINDOW,
    )
    return [
        _devices(platform) if paragraph == "[devices]"
        else Text(paragraph.removeprefix("[code]\n"), "code") if paragraph.startswith("[code]")
        else Text(" ".join(paragraph.split()))
        for paragraph in filter(None, map(str.strip, text.split("\n\n")))
    ]  # fmt: skip


def _devices(platform: Platform) -> Table:
    headers = ["Device type", "Devices", "Nodes", "Memory (MB)", "Link (MB/s)", "W", "Idle W",
               "$/s"]  # fmt: skip
    rows = []
    for type_, devices in zip(platform.types, platform.of_type, strict=True):
        nodes = len(np.unique(platform.node_of[devices]))
        figures = [type_.memory_mb, type_.bandwidth_mb_s, type_.watts, type_.idle_watts,
                   type_.dollars_per_s]  # fmt: skip
        if platform.measured is None:
            figures += [type_.speed, type_.speedup_slope]
        name = f"{type_.name} ({'accelerator' if type_.accelerator else 'CPU'})"
        cells = [f"{each:g}" if np.isfinite(each) else "–" for each in figures]
        rows.append([name, f"{type_.count:,}", f"{nodes:,}", *cells])
    return Table(headers if platform.measured else [*headers, "Speed", "Slope"], rows)


def provenance(study: Study) -> list[Block]:
    facts = study.provenance
    # If the arena is remote, only the client is known.
    whose = "" if facts.get("arena") in (None, "embedded") else " of the client"
    machine = facts.get("machine") or {}
    packages = [" ".join(each) for each in sorted((facts.get("packages") or {}).items())]
    peaks = [
        f"{each['name']} {number(each['peak_mb'], 4)}" for each in facts.get("processes") or ()
    ]
    rows = {
        "Command": facts.get("command"),
        "Or, from this folder": "hybrid experiment run FOLDER/experiment.json",
        "Started": facts.get("started_at"),
        "Finished": facts.get("finished_at"),
        "Version": facts.get("version"),
        "Commit": facts.get("commit"),
        f"Python{whose}": facts.get("python"),
        f"Packages{whose}": ", ".join(packages),
        f"Machine{whose}": ", ".join(f"{name} {value}" for name, value in machine.items()),
        "Arena": facts.get("arena"),
        "Peak memory (MB)": ", ".join(peaks),
    }
    runs = [
        [
            study.label(str(run.get("variant", ""))) or "–",
            *(str(run.get(name, "–")) for name in ("seed", "run")),
            *(number(run.get(name)) for name in ("seconds", "tasks_per_s")),
        ]
        for run in facts.get("runs") or []
    ]
    (_, first), *others = specs_by_variant(study).items()
    blocks: list[Block] = [
        Table(["", ""], [[name, str(value)] for name, value in rows.items() if value], (0, 1)),
        Text("Runs", "heading"),
        Table(["Variant", "Seed", "Run", "Seconds", "Tasks per second"], runs, (0, 1, 2)),
        Text("Specification", "heading"),
        Text(_yaml(_printable(first)), "code"),
    ]
    for variant, spec in others:
        changes = difference(_printable(first), _printable(spec))
        if changed := [f"{path}: {_yaml(new)}" for path, _, new in changes]:
            blocks.append(Text(f"{study.label(variant)}: as above, but"))
            blocks.append(Text("\n".join(changed), "code"))
    return blocks


def specs_by_variant(study: Study) -> dict[str, dict[str, Any]]:
    """The complete spec of each variant's runs, without what differs between its seeds."""
    stored = {
        run.get("variant"): run["spec"]
        for run in reversed(study.provenance.get("runs") or [])
        if isinstance(run.get("spec"), dict)
    }
    specs: dict[str, dict[str, Any]] = {}
    for variant in study.experiment.variants:
        declared = study.experiment.run_spec(variant, study.experiment.seeds[0])
        spec = stored.get(variant) or json.loads(declared.model_dump_json())
        specs[variant] = {k: v for k, v in spec.items() if k not in ("name", "seed")}
    return specs


def _printable(spec: dict[str, Any]) -> dict[str, Any]:
    """A spec without what is long and says nothing: measured tables, fields left out of devices."""
    cluster, physics = dict(spec.get("cluster") or {}), dict(spec.get("physics") or {})
    if devices := cluster.get("devices"):
        entries = [{k: v for k, v in each.items() if v is not None} for each in devices]
        cluster = {k: v for k, v in cluster.items() if k not in SHORT_FORM} | {"devices": entries}
    if curves := physics.get("measured"):
        physics["measured"] = f"{len(curves)} curves (see provenance.json)"
    return {**spec, "cluster": cluster, "physics": physics}


def difference(old: Any, new: Any, path: str = "") -> list[tuple[str, Any, Any]]:
    """Where two mappings differ: the field and both values."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [
            changed
            for key in dict.fromkeys([*old, *new])
            for changed in difference(old.get(key), new.get(key), f"{path}.{key}".lstrip("."))
        ]
    return [] if old == new else [(path, old, new)]


def _yaml(value: Any) -> str:
    """Mappings and lists of plain values on one line."""
    text = yaml.safe_dump(
        value, default_flow_style=None, width=90, sort_keys=False, allow_unicode=True
    )
    return text.removesuffix("...\n").strip()
