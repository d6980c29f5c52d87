"""How it was found: what was simulated, by which rules, on which machine, with which command."""

from __future__ import annotations

import json
from typing import Any

import yaml

from services.lab.report.data import Study
from services.lab.report.document import Block, Code, Heading, Table, Text
from services.lab.report.wording import counted, listed, number
from shared.spec import Physics, RunSpec


def methods(study: Study) -> list[Block]:
    experiment = study.experiment
    spec = experiment.run_spec(next(iter(experiment.variants)), experiment.seeds[0])
    judged = experiment.tasks - experiment.judge_from
    seeds = listed([str(seed) for seed in study.seeds])
    text = (
        f"Every run is a stream of {counted(experiment.tasks, 'task')} that goes to all schedulers "
        "at once, through the real pipeline (generator, workers, simulator, trainer, store). Each "
        f"scheduler owns a virtual cluster of {counted(spec.cluster.cpus, 'CPU')} and "
        f"{counted(spec.cluster.gpus, 'GPU')} with {number(spec.cluster.gpu_memory_mb, 4)} MB "
        "each; devices serve their parts first come, first served, in task order. "
        f"{counted(judged, 'task')} of each run {'is' if judged == 1 else 'are'} judged"
        + (f" (from task {experiment.judge_from:,} on)" if experiment.judge_from else "")
        + f"; seeds: {seeds}."
    )
    missing = sorted(set(experiment.seeds) - set(study.seeds))
    if missing:
        text += f" Declared, but not in the data: {listed([str(seed) for seed in missing])}."
    if len(experiment.variants) > 1:
        text += " What a variant changes is listed under Provenance; figures here are the first's."
    return [
        Text(text),
        Text("With size N, intensity I, memory M (MB) and the share f of a task on a GPU:"),
        Code(formulas(spec.physics)),
        Text(
            "The cluster bound is the least makespan if tasks could be cut freely over all GPUs "
            "and CPUs without waiting or depending on one another: a linear program, solved "
            "exactly by sorting tasks on CPU time over GPU time. The bound that knows arrivals is "
            "the largest of t plus the cluster bound of what arrives from t on, over moments t "
            "that leave ever fewer tasks (each 0.7 times as many), and of each "
            "arrival plus the task's fastest execution. The Oracle takes the fastest share for "
            "each task and looks at no queue, so it is the floor of "
            "execution time, not of the makespan."
        ),
        Text(
            "The rules and the Oracle decide the same, bit for bit, whenever a run is repeated. "
            "The learners (hybrid_ml, rl_agent) train in wall time beside the stream, so their "
            "models come at other tasks on another machine or day, and their figures vary."
        ),
        Text(_statistics(study)),
    ]


def _statistics(study: Study) -> str:
    n = len(study.seeds)
    if n == 1:
        return "Statistics: one seed was run, so there are no intervals and no tests."
    return (
        f"Statistics: intervals are Student t at 95 % over n = {n} seeds. Ratios are geometric "
        "means, their intervals those of the mean logarithm, paired by seed, because the same seed "
        "gives the same tasks to every scheduler. Differences are paired t tests on the logarithm "
        "of the figure. In the table of tests p is corrected after Holm over all tests of the "
        "table; in sentences about who is best, over all pairs of schedulers of that variant and "
        "figure; in sentences about a sweep, over all schedulers and figures held against each "
        f"other. {n} seeds are few; what is not told apart may still differ."
    )


def formulas(physics: Physics) -> str:
    """The physics with this run's constants."""
    g = {name: f"{value:g}" for name, value in physics.model_dump().items()
         if isinstance(value, int | float)}  # fmt: skip
    time = "g + c, one after the other" if physics.split == "serial" else "max(g, c), both at once"
    if physics.cost_model == "cloud":
        cost = f"${g['gpu_dollars_per_s']} g + ${g['cpu_dollars_per_s']} c"
    else:
        cost = f"energy / 3.6e6 * ${g['dollars_per_kwh']}"
    policy = {
        "cpu": "the whole task runs on the CPU",
        "page": "the overflow pays its transfer twice",
        "fail": "the task fails and costs nothing",
    }[physics.memory_policy]
    return "\n".join(
        [
            f"base time       T = (N / {g['size_unit']}) ^ {g['size_exponent']} "
            f"/ (I + {g['intensity_offset']})  s",
            f"speed-up        S = 1 + {g['speedup_slope']} I",
            f"transfer        X = M / {g['bandwidth_mb_s']}  s",
            "GPU part        g = f (T / S + X)",
            "CPU part        c = (1 - f) T",
            f"execution time  {time}",
            f"energy          {g['gpu_watts']} g + {g['cpu_watts']} c  J",
            f"cost            {cost}",
            f"f M too large   {policy}",
        ]
    )


def provenance(study: Study) -> list[Block]:
    given = study.provenance
    machine = given.get("machine") or {}
    packages = given.get("packages") or {}
    # Of an arena elsewhere only the client is known.
    whose = "" if given.get("arena") in (None, "embedded") else " of the client"
    facts: list[tuple[str, Any]] = [
        ("Command", given.get("command")),
        ("Or, from here", "hybrid experiment run FOLDER/experiment.json"),
        ("Started", given.get("started_at")),
        ("Finished", given.get("finished_at")),
        ("Version", given.get("version")),
        ("Commit", given.get("commit")),
        (f"Python{whose}", given.get("python")),
        (
            f"Packages{whose}",
            ", ".join(f"{name} {version}" for name, version in sorted(packages.items())),
        ),
        (f"Machine{whose}", _machine(machine)),
        ("Arena", given.get("arena")),
    ]
    rows = [[name, "–" if value in (None, "") else str(value)] for name, value in facts]
    blocks: list[Block] = [
        Table(["", ""], rows, text_columns=(0, 1), widths=(0.8, 6)),
        *_runs(study),
        *_processes(study),
        Heading("Specification"),
    ]
    first, *others = specs_by_variant(study).items()
    blocks.append(Code(yaml.safe_dump(first[1], sort_keys=False, allow_unicode=True)))
    for variant, spec in others:
        changed = difference(first[1], spec)
        if changed:
            label = study.label(variant)
            blocks.append(Text(f"{label}: as above, but"))
            blocks.append(Code("\n".join(f"{path}: {_short(new)}" for path, (_, new) in changed)))
    return blocks


def specs_by_variant(study: Study) -> dict[str, dict[str, Any]]:
    """The whole spec of each variant's runs, without what differs between its seeds."""
    found: dict[str, dict[str, Any]] = {}
    for variant in study.experiment.variants:
        stored = [run.get("spec") for run in study.runs() if run.get("variant") == variant]
        spec = next((data for data in stored if isinstance(data, dict)), None)
        if spec is None:
            declared: RunSpec = study.experiment.run_spec(variant, study.experiment.seeds[0])
            spec = json.loads(declared.model_dump_json())
        found[variant] = {k: v for k, v in spec.items() if k not in ("name", "seed")}
    return found


def difference(old: Any, new: Any, path: str = "") -> list[tuple[str, tuple[Any, Any]]]:
    """Where two specs differ: the field and both values."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = [*old, *(key for key in new if key not in old)]
        return [
            found
            for key in keys
            for found in difference(old.get(key), new.get(key), f"{path}.{key}".lstrip("."))
        ]
    return [] if old == new else [(path, (old, new))]


def _short(value: Any) -> str:
    return yaml.safe_dump(value, default_flow_style=True, width=1e9).removesuffix("...\n").strip()


def _machine(machine: dict[str, Any]) -> str:
    parts = [machine.get("cpu"), machine.get("system")]
    if machine.get("cores"):
        parts.insert(1, counted(int(machine["cores"]), "core"))
    if machine.get("memory_gb"):
        parts.insert(2, f"{number(float(machine['memory_gb']))} GB")
    return ", ".join(str(part) for part in parts if part)


def _runs(study: Study) -> list[Block]:
    many = len(study.experiment.variants) > 1
    rows = [
        [
            *([study.label(str(run.get("variant", "")))] if many else []),
            str(run.get("seed", "–")),
            str(run.get("run", "–")),
            number(run.get("seconds")),
            number(run.get("tasks_per_s")),
        ]
        for run in study.runs()
    ]
    if not rows:
        return []
    headers = [*(["Variant"] if many else []), "Seed", "Run", "Seconds", "Tasks per second"]
    text = (0, 1, 2) if many else (0, 1)
    return [Heading("Runs"), Table(headers, rows, text_columns=text)]


def _processes(study: Study) -> list[Block]:
    found = study.provenance.get("processes") or []
    rows = [[str(each.get("name")), number(each.get("peak_mb"), 4)] for each in found]
    if not rows:
        return []
    return [Heading("Peak memory"), Table(["Process", "Peak resident memory (MB)"], rows)]
