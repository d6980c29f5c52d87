"""How the results were obtained: the simulation's rules, the statistics, machine and command."""

from __future__ import annotations

import json
from typing import Any

import yaml

from services.lab.reports.document import Block, Table, Text
from services.lab.reports.formatting import counted, listed, number
from services.lab.reports.study import Study
from shared.domain.spec import Physics

_BOUNDS = (
    "The cluster bound is the least makespan if tasks could be divided freely over all GPUs and "
    "CPUs, without queues and dependencies: a linear program, solved exactly by sorting tasks by "
    "CPU time over GPU time. The arrival bound is the largest of t plus the cluster bound of what "
    "arrives from t on (over moments t that leave ever fewer tasks, each 0.7 times as many), and "
    "of each arrival plus the task's fastest execution. The Oracle takes the fastest share for "
    "each task and ignores queues: it is the lower bound of execution time, not of the makespan."
)
_REPEATED = (
    "The rules and the Oracle decide the same whenever a run is repeated. The learners (hybrid_ml, "
    "rl_agent) train in wall time beside the stream: their results vary with machine and load."
)


def methods(study: Study) -> list[Block]:
    experiment, n = study.experiment, len(study.seeds)
    spec = experiment.run_spec(next(iter(experiment.variants)), experiment.seeds[0])
    cluster = spec.cluster
    runs = (
        f"Every run is a stream of {counted(experiment.tasks, 'task')} that goes to all schedulers "
        "at once, through the real pipeline. Each scheduler has its own virtual cluster of "
        f"{counted(cluster.cpus, 'CPU')} and {counted(cluster.gpus, 'GPU')} with "
        f"{number(cluster.gpu_memory_mb, 4)} MB each; devices serve tasks in task order. Judged "
        f"tasks of each run: {experiment.judged:,}, from task {experiment.judge_from:,} on; seeds: "
        f"{listed(study.seeds)}."
    )
    if missing := sorted(set(experiment.seeds) - set(study.seeds)):
        runs += f" Declared, but not in the data: {listed(missing)}."
    if len(experiment.variants) > 1:
        runs += " Figures here are the first variant's; Provenance lists what the others change."
    statistics = "Statistics: one seed was run, so there are no intervals and no tests."
    if n > 1:
        statistics = (
            f"Statistics: intervals are Student t at 95 % over n = {n} seeds. Ratios are geometric "
            "means, paired by seed (the same seed gives every scheduler the same tasks), with the "
            "interval of the mean logarithm. Tests are paired t tests on the logarithm of the "
            "figure, which is assumed to be normally distributed over seeds, corrected after Holm "
            "over the family named beside each table; in the summary, over all pairs of schedulers "
            f"of that variant and figure. {n} seeds are few: what is not distinguished may still "
            "differ."
        )
    return [
        Text(runs),
        Text("With size N, intensity I, memory M (MB) and the share f of a task on a GPU:"),
        Text(_formulas(spec.physics), "code"),
        *(Text(text) for text in (_BOUNDS, _REPEATED, statistics)),
    ]


def _formulas(physics: Physics) -> str:
    """The physics with this run's constants."""
    c = {name: f"{value:g}" for name, value in physics.model_dump().items()
         if isinstance(value, int | float)}  # fmt: skip
    time = "g + c, one after the other" if physics.split == "serial" else "max(g, c), both at once"
    cost = {
        "cloud": f"${c['gpu_dollars_per_s']} g + ${c['cpu_dollars_per_s']} c",
        "electricity": f"energy / 3.6e6 * ${c['dollars_per_kwh']}",
    }[physics.cost_model]
    too_large = {
        "cpu": "the complete task runs on the CPU",
        "page": "the overflow pays its transfer twice",
        "fail": "the task fails and costs nothing",
    }[physics.memory_policy]
    return f"""\
base time       T = (N / {c["size_unit"]}) ^ {c["size_exponent"]} / (I + {c["intensity_offset"]})  s
speed-up        S = 1 + {c["speedup_slope"]} I
transfer        X = M / {c["bandwidth_mb_s"]}  s
GPU part        g = f (T / S + X)
CPU part        c = (1 - f) T
execution time  {time}
energy          {c["gpu_watts"]} g + {c["cpu_watts"]} c  J
cost            {cost}
f M too large   {too_large}"""


def provenance(study: Study) -> list[Block]:
    facts = study.provenance
    # Of a remote arena only the client is known.
    whose = "" if facts.get("arena") in (None, "embedded") else " of the client"
    packages = sorted((facts.get("packages") or {}).items())
    rows = {
        "Command": facts.get("command"),
        "Or, from this folder": "hybrid experiment run FOLDER/experiment.json",
        "Started": facts.get("started_at"),
        "Finished": facts.get("finished_at"),
        "Version": facts.get("version"),
        "Commit": facts.get("commit"),
        f"Python{whose}": facts.get("python"),
        f"Packages{whose}": ", ".join(f"{name} {version}" for name, version in packages),
        f"Machine{whose}": _machine(facts.get("machine") or {}),
        "Arena": facts.get("arena"),
    }
    (_, first), *others = specs_by_variant(study).items()
    blocks: list[Block] = [
        Table(["", ""], [[name, str(value or "–")] for name, value in rows.items()], (0, 1)),
        *_runs(study),
        Text("Specification", "heading"),
        Text(yaml.safe_dump(first, sort_keys=False, allow_unicode=True), "code"),
    ]
    for variant, spec in others:
        if changed := [f"{path}: {_flow(new)}" for path, _, new in difference(first, spec)]:
            blocks.append(Text(f"{study.label(variant)}: as above, but"))
            blocks.append(Text("\n".join(changed), "code"))
    return blocks


def specs_by_variant(study: Study) -> dict[str, dict[str, Any]]:
    """The complete spec of each variant's runs, without what differs between its seeds."""
    stored = {
        run.get("variant"): run["spec"]
        for run in reversed(list(study.runs()))
        if isinstance(run.get("spec"), dict)
    }
    specs: dict[str, dict[str, Any]] = {}
    for variant in study.experiment.variants:
        declared = study.experiment.run_spec(variant, study.experiment.seeds[0])
        spec = stored.get(variant) or json.loads(declared.model_dump_json())
        specs[variant] = {k: v for k, v in spec.items() if k not in ("name", "seed")}
    return specs


def difference(old: Any, new: Any, path: str = "") -> list[tuple[str, Any, Any]]:
    """Where two mappings differ: the field and both values."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [
            changed
            for key in dict.fromkeys([*old, *new])
            for changed in difference(old.get(key), new.get(key), f"{path}.{key}".lstrip("."))
        ]
    return [] if old == new else [(path, old, new)]


def _flow(value: Any) -> str:
    return yaml.safe_dump(value, default_flow_style=True, width=1e9).removesuffix("...\n").strip()


def _machine(machine: dict[str, Any]) -> str:
    units = {"cpu": "", "cores": " cores", "memory_gb": " GB", "system": ""}
    return ", ".join(f"{machine[key]}{unit}" for key, unit in units.items() if machine.get(key))


def _runs(study: Study) -> list[Block]:
    """Every run, and the peak memory of the arena's processes."""
    runs = [
        [
            study.label(str(run.get("variant", ""))) or "–",
            str(run.get("seed", "–")),
            str(run.get("run", "–")),
            number(run.get("seconds")),
            number(run.get("tasks_per_s")),
        ]
        for run in study.runs()
    ]
    processes = [
        [str(each.get("name")), number(each.get("peak_mb"), 4)]
        for each in study.provenance.get("processes") or []
    ]
    headers = ["Variant", "Seed", "Run", "Seconds", "Tasks per second"]
    blocks: list[Block] = []
    if runs:
        blocks += [Text("Runs", "heading"), Table(headers, runs, (0, 1, 2))]
    if processes:
        headers = ["Process", "Peak resident memory (MB)"]
        blocks += [Text("Peak memory", "heading"), Table(headers, processes)]
    return blocks
