"""Import of Alibaba's node list of 2023 (`openb_node_list_all_node.csv`).

Nodes with as many GPUs of the same model are one entry with a count. A node's processors are one
CPU: how many of them a pod keeps busy is not known.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path
from typing import Any

from services.lab.platforms.data_sheets import describe
from services.lab.platforms.imported import Imported, ImportFailed

COLUMNS = {"sn", "gpu", "model"}

# Names of models that say more than the data sheets' do, and their memory in MB.
MODELS = {"v100m16": ("v100", 16_000), "v100m32": ("v100", 32_000)}


def import_alibaba(source: Path, name: str) -> Imported:
    groups = _groups(source)
    devices: list[dict[str, Any]] = []
    nodes = []
    for (model, gpus), count in sorted(groups.items()):
        node = f"{model}-x{gpus}" if gpus else "cpu-only"
        nodes.append({"name": node, "count": count})
        if gpus:
            devices.append({**_gpu(model), "count": gpus, "node": node})
        devices.append({"type": "cpu", "node": node})
    models = sorted({model for model, gpus in groups if gpus})
    with_gpu = sum(count for (_, gpus), count in groups.items() if gpus)
    total = sum(gpus * count for (_, gpus), count in groups.items())
    unknown = [model for model in models if "memory_mb" not in _gpu(model)]
    return Imported(
        {
            "name": name,
            "description": "The nodes of Alibaba's GPU cluster of 2023.",
            "sources": [f"nodes: {source.name} of alibaba/clusterdata, cluster-trace-gpu-v2023"],
            "cluster": {"devices": devices, "nodes": nodes},
        },
        took=[
            f"{sum(groups.values()):,} nodes, {with_gpu:,} of them with {total:,} GPUs: "
            f"{', '.join(models)}"
        ],
        left_out=["cpu_milli and memory_mib: a node's processors are one CPU"],
        assumed=[
            "speed of all GPU models: that of the default GPU; the list has no times",
            "memory and power of GPUs: by their data sheets",
            *(f"memory and power of {model}: the arena's default" for model in unknown),
            "network: the arena's default",
        ],
    )


def _gpu(model: str) -> dict[str, Any]:
    if model not in MODELS:
        return describe(model)
    known, memory = MODELS[model]
    return {**describe(known), "type": model, "memory_mb": memory}


def _groups(source: Path) -> Counter[tuple[str, int]]:
    """How many nodes there are of each model and number of GPUs."""
    groups: Counter[tuple[str, int]] = Counter()
    try:
        with source.open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file)
            if missing := sorted(COLUMNS - set(rows.fieldnames or ())):
                raise ImportFailed(f"{source}: line 1: no column {', '.join(missing)}")
            for row in rows:
                groups[_model_and_gpus(row, f"{source}: line {rows.line_num}")] += 1
    except OSError as error:
        raise ImportFailed(f"{source}: cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise ImportFailed(f"{source}: not a CSV file: {error}") from None
    if not groups:
        raise ImportFailed(f"{source}: no nodes")
    return groups


def _model_and_gpus(row: dict[str, str | None], place: str) -> tuple[str, int]:
    number, model = (row["gpu"] or "").strip(), (row["model"] or "").strip().lower()
    if not number.isdecimal():
        raise ImportFailed(f"{place}: gpu is {number!r}; expected the number of GPUs, 0 or more")
    if not int(number):
        return "", 0
    if not re.fullmatch(r"[a-z][a-z0-9_.]{0,25}", model):
        raise ImportFailed(f"{place}: model is {model!r}; expected a name such as V100M16")
    return model, int(number)
