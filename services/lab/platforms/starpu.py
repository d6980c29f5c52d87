"""Import of StarPU's performance models and bus measurements.

The source is a `sampling` folder: `codelets/**/NAME.HOST` has the measured times of a codelet on
each device of a host, `bus/HOST.*` the bandwidths, the numbers of devices and their models.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import Any

from services.lab.platforms.data_sheets import assumptions, describe
from services.lab.platforms.imported import Imported, ImportFailed, digits
from shared.domain.hardware.measured_times import Curve

CPU, CUDA = 0, 1
TYPE_NAMES = {CPU: "CPU", CUDA: "CUDA", 2: "OpenCL", 3: "MIC"}
# CUDA devices of unknown models whose times differ by a larger factor are kept apart.
ALIKE = 1.25
# A deviation that differs more from the one that the sums give is mentioned.
CONTRADICTION = 0.1

Device = tuple[int, int]  # StarPU's type and number of the device


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of a performance model, in seconds."""

    size: float
    mean: float
    deviation: float  # absolute
    count: int
    implementation: int
    contradicts: bool  # the deviation does not follow from the sums


@dataclass(slots=True)
class Models:
    """The entries of all codelets by device, and what was not taken."""

    entries: dict[tuple[str, Device], list[Entry]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


def import_starpu(source: Path, name: str, host: str | None = None) -> Imported:
    codelets = source / "codelets"
    if not codelets.is_dir():
        raise ImportFailed(f"{source}: no folder `codelets`; give StarPU's `sampling` folder")
    host = _host(source, host)
    models = _read_models(codelets, host)
    if not models.entries:
        raise ImportFailed(f"{codelets}: no measured times of host {host}")
    bus = Bus.read(source / "bus", host)
    groups = _groups(models, bus)
    curves = [
        curve
        for kind in dict.fromkeys(kind for kind, _ in models.entries)
        for type_name, devices in groups.items()
        if (curve := _curve(kind, type_name, devices, models)) is not None
    ]
    devices = [_device(type_name, members, bus) for type_name, members in groups.items()]
    fields: dict[str, Any] = {
        "name": name,
        "description": f"Machine {host}, measured by StarPU; sizes are bytes of a task's data.",
        "sources": [f"task times and bus: StarPU performance models of {host}"],
        "cluster": {"devices": devices},
        "physics": {"noise": "measured", "memory_mb_per_size": 1e-6},
    }
    return Imported(
        fields,
        tuple(curves),
        took=list(_import_seconds(curves, groups, models, bus)),
        left_out=[*models.left_out, *_left_out(groups, models, bus)],
        assumed=list(_assumed(devices, bus)),
    )


def _host(source: Path, host: str | None) -> str:
    suffixes = {file.suffix[1:] for file in (source / "codelets").rglob("*.*") if file.is_file()}
    hosts = sorted(suffixes)
    if host is not None and host not in hosts:
        raise ImportFailed(f"{source}: no host {host}; measured are {', '.join(hosts)}")
    if host is None and len(hosts) != 1:
        what = f"choose one with --host: {', '.join(hosts)}" if hosts else "no performance models"
        raise ImportFailed(f"{source}: {what}")
    return host or hosts[0]


def _read_models(folder: Path, host: str) -> Models:
    models = Models()
    aliases, empty = [], []
    for file in sorted(folder.rglob(f"*.{host}")):
        kind = file.name.removesuffix(f".{host}")
        text = file.read_text(encoding="utf-8", errors="replace")
        # A copy of the folder without links has the name of the target in place of its content.
        if file.is_symlink() or re.fullmatch(rf"[^\s/]+\.{re.escape(host)}", text.strip()):
            aliases.append(kind)
            continue
        before = len(models.entries)
        for device, entry in _entries(text, file, models):
            models.entries.setdefault((kind, device), []).append(entry)
        if len(models.entries) == before:
            empty.append(kind)
    if aliases:
        models.left_out.append(f"{len(aliases)} links to other models: {', '.join(aliases)}")
    if empty:
        models.left_out.append(f"models without times: {', '.join(empty)}")
    return models


def _entries(text: str, file: Path, models: Models) -> Iterator[tuple[Device, Entry]]:
    """The value of a heading such as `# device id` is on the next line that is no comment."""
    heading, combination, types, implementation = "", [0, 0, 1], 1, 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("#"):
            heading = line.lstrip("# ")
            if model := re.match(r"Model for .*_impl(\d+)", heading):
                implementation = int(model[1])
            continue
        words = line.split()
        if not words:
            continue
        try:
            if heading.startswith("number of types devices"):
                types = int(words[0])
            elif heading.startswith("device type"):
                combination[0] = int(words[0])
            elif heading.startswith("device id"):
                combination[1] = int(words[0])
            elif heading.startswith("number of cores"):
                combination[2] = int(words[0])
            elif heading.startswith("hash") and types == 1 and combination[2] == 1:
                device = combination[0], combination[1]
                if (entry := _entry(words, implementation)) is not None:
                    yield device, entry
            elif heading.startswith("hash"):
                note = f"{file.name}: times of several devices or cores together"
                if note not in models.left_out:
                    models.left_out.append(note)
        except (ValueError, IndexError):
            raise ImportFailed(
                f"{file}, line {number}: {line.strip()!r} is not a value of {heading!r}"
            ) from None


def _entry(words: list[str], implementation: int) -> Entry | None:
    """From `hash size flops mean dev sum sum2 n`; None: nothing was measured."""
    size, mean, deviation, total, squares = (float(words[column]) for column in (1, 3, 4, 5, 6))
    count = int(words[7])
    if not (size > 0 and mean > 0 and count > 0 and math.isfinite(mean)):
        return None
    by_sums = math.sqrt(abs(squares / count - (total / count) ** 2))
    return Entry(
        size,
        mean * 1e-6,
        deviation * 1e-6,
        count,
        implementation,
        contradicts=abs(by_sums - deviation) > CONTRADICTION * mean,
    )


@dataclass(frozen=True, slots=True)
class Bus:
    """What is known of the machine's devices; numbers and models are empty if it is nothing."""

    counts: dict[int, int]
    to_device_mb_s: list[float]  # by number of the CUDA device
    models: list[str]  # likewise
    memory_mb: list[float]  # likewise

    @classmethod
    def read(cls, folder: Path, host: str) -> Bus:
        counts: dict[int, int] = {}
        for line in _text(folder / f"{host}.config").splitlines():
            if match := re.match(r"(\d+)\s*# Number of (CPUs|CUDA|OpenCL|MIC)", line):
                code = {"CPUs": CPU, "CUDA": CUDA, "OpenCL": 2, "MIC": 3}[match[2]]
                counts[code] = int(match[1])
        rows = [
            line.split()
            for line in _text(folder / f"{host}.bandwidth").splitlines()
            if line.strip() and not line.startswith("#")
        ]
        # The first row and column are main memory, then the CUDA devices.
        bandwidths = [float(word) for word in rows[0][1 : 1 + counts.get(CUDA, 0)]] if rows else []
        xml = next(
            filter(None, (_text(folder / f"{host}.platform{v}.xml") for v in (".v4", ""))), ""
        )
        hosts = re.findall(r'<host id="CUDA\d+".*?</host>', xml, re.DOTALL)
        models = [_property(each, "model") for each in hosts]
        memory = [_property(each, "memsize") for each in hosts]
        return cls(
            counts,
            bandwidths,
            models if all(models) else [],
            [int(bytes) / 1e6 for bytes in memory] if all(memory) else [],
        )


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""


def _property(host: str, name: str) -> str:
    match = re.search(rf'<prop id="{name}" value="([^"]*)"', host)
    return match[1] if match else ""


def _groups(models: Models, bus: Bus) -> dict[str, list[Device]]:
    """The device types, accelerators first, with the devices whose times are pooled."""
    measured = sorted({device for _, device in models.entries})
    groups: dict[str, list[Device]] = {}
    for device in measured:
        if device[0] == CUDA:
            groups.setdefault(_cuda_type(device, groups, models, bus), []).append(device)
    if cpus := [device for device in measured if device[0] == CPU]:
        groups["cpu"] = cpus
    return groups


def _cuda_type(device: Device, groups: dict[str, list[Device]], models: Models, bus: Bus) -> str:
    if device[1] < len(bus.models):
        return _short_name(bus.models[device[1]])
    for name, members in groups.items():
        if _factor(device, members[0], models) < ALIKE:
            return name
    return "cuda" if not groups else f"cuda-{len(groups)}"


def _short_name(model: str) -> str:
    """
    >>> _short_name("Tesla K40m")
    'k40m'
    """
    words = [word for word in model.split() if word not in ("NVIDIA", "Tesla", "GeForce")]
    name = re.sub(r"[^a-z0-9_.-]", "", "-".join(words).lower())[:32]
    return name if name[:1].isalpha() else f"gpu-{name}"[:32]


def _factor(one: Device, other: Device, models: Models) -> float:
    """By how much the times of two devices differ, typically."""
    ratios = []
    for kind, device in models.entries:
        if device == one and (kind, other) in models.entries:
            theirs = {entry.size: entry.mean for entry in models.entries[kind, other]}
            ratios += [
                max(entry.mean / theirs[entry.size], theirs[entry.size] / entry.mean)
                for entry in models.entries[kind, one]
                if entry.size in theirs
            ]
    return median(ratios) if ratios else 1.0


def _curve(kind: str, type_name: str, devices: list[Device], models: Models) -> Curve | None:
    """All measurements of a size are pooled; of several implementations the fastest is taken."""
    by_size: dict[float, dict[int, list[Entry]]] = {}
    for device in devices:
        for entry in models.entries.get((kind, device), []):
            by_size.setdefault(entry.size, {}).setdefault(entry.implementation, []).append(entry)
    if not by_size:
        return None
    pooled = {
        size: min(map(_pooled, implementations.values()))
        for size, implementations in sorted(by_size.items())
    }
    return Curve(
        kind=kind,
        type=type_name,
        sizes=tuple(pooled),
        seconds=tuple(digits(mean) for mean, _, _ in pooled.values()),
        deviations=tuple(digits(deviation) for _, deviation, _ in pooled.values()),
        counts=tuple(count for _, _, count in pooled.values()),
    )


def _pooled(entries: Iterable[Entry]) -> tuple[float, float, int]:
    """Mean, deviation over the mean, and number of all measurements together."""
    entries = list(entries)
    count = sum(entry.count for entry in entries)
    mean = sum(entry.count * entry.mean for entry in entries) / count
    square = sum(entry.count * (entry.deviation**2 + entry.mean**2) for entry in entries) / count
    return mean, math.sqrt(max(square - mean**2, 0.0)) / mean, count


def _device(type_name: str, members: list[Device], bus: Bus) -> dict[str, Any]:
    known: dict[str, Any] = {"count": len(members)}
    if members[0][0] == CPU:
        known["count"] = bus.counts.get(CPU, len(members))
        return describe(type_name, **known)
    numbers = [number for _, number in members]
    if bandwidths := [bus.to_device_mb_s[n] for n in numbers if n < len(bus.to_device_mb_s)]:
        known["bandwidth_mb_s"] = round(fmean(bandwidths), 1)
    if memory := [bus.memory_mb[n] for n in numbers if n < len(bus.memory_mb)]:
        known["memory_mb"] = round(min(memory), 1)
    return describe(type_name, accelerator=True, **known)


def _import_seconds(
    curves: list[Curve], groups: dict[str, list[Device]], models: Models, bus: Bus
) -> Iterator[str]:
    kinds = {curve.kind for curve in curves}
    entries = sum(len(each) for each in models.entries.values())
    yield f"{entries} times of {len(kinds)} kinds: {', '.join(sorted(kinds))}"
    for type_name, devices in groups.items():
        if len(devices) > 1:
            worst = _largest_difference(type_name, devices, curves, models)
            yield f"{type_name}: {len(devices)} devices pooled; {worst}"
    if bus.to_device_mb_s:
        yield "bandwidth from main memory to each CUDA device"


def _largest_difference(
    type_name: str, devices: list[Device], curves: list[Curve], models: Models
) -> str:
    worst = 0.0, ""
    for curve in curves:
        if curve.type != type_name:
            continue
        mean = dict(zip(curve.sizes, curve.seconds, strict=True))
        for device in devices:
            for entry in models.entries.get((curve.kind, device), []):
                difference = abs(entry.mean / mean[entry.size] - 1)
                worst = max(worst, (difference, f"{curve.kind}, size {entry.size:g}"))
    return f"one of them differs from the mean by at most {worst[0]:.0%} ({worst[1]})"


def _left_out(groups: dict[str, list[Device]], models: Models, bus: Bus) -> Iterator[str]:
    taken = {device for devices in groups.values() for device in devices}
    others = sorted({device[0] for _, device in models.entries if device not in taken})
    for code in others:
        yield f"times on {TYPE_NAMES.get(code, f'device type {code}')} devices"
    if bus.counts.get(2):
        yield "the OpenCL view of the same devices"
    entries = [entry for each in models.entries.values() for entry in each]
    if contradicting := sum(entry.contradicts for entry in entries):
        yield (
            f"sums of {contradicting} times whose deviation they contradict; the column `dev` is "
            "taken"
        )
    yield "latency of the bus, bandwidth between devices and back: a task moves its data in once"


def _assumed(devices: list[dict[str, Any]], bus: Bus) -> Iterator[str]:
    known = {device["type"]: set(device) - {"watts"} for device in devices}
    for fields in known.values():
        fields -= set() if bus.memory_mb else {"memory_mb"}
    if CPU not in bus.counts:
        yield "count of cpu: that of the measured cores"
    yield from assumptions(known)
    yield "one core drives each CUDA device in StarPU; here all cores take tasks"
    yield "memory of a task: its data, 1 MB for a size of 1,000,000"
