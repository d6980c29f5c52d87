"""What a device of a real run is on this machine, and what its tasks may take of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ConfigDict, ValidationError, field_validator
from pydantic.dataclasses import dataclass as checked_dataclass

from shared.errors import SpecError

TORCH = "torch:"
LIBRARIES = ("plain", "blas")


@checked_dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class DeviceSetting:
    """The `real` block of a device in a platform."""

    cores: tuple[int, ...] = field(default=(0,))  # that the device's process is pinned to
    # `plain`: numpy without BLAS; `blas`: numpy's fastest; `torch:cuda:0`: a device of torch
    library: str = "blas"
    threads: int = 0  # of the library; 0: one for each core
    copy: bool = False  # whether the memory of a task is really copied to the device
    # Factor of a task's data, operands and memory; 1: as docs/profiler.md defines sizes.
    scale: float = 1.0

    @field_validator("cores")
    @classmethod
    def _has_cores(cls, cores: tuple[int, ...]) -> tuple[int, ...]:
        if not cores or len(set(cores)) != len(cores) or min(cores) < 0:
            raise ValueError("numbers of cores, each once, at least one")
        return cores

    @field_validator("library")
    @classmethod
    def _known(cls, library: str) -> str:
        if library not in LIBRARIES and not library.startswith(TORCH):
            raise ValueError(f"one of {', '.join(LIBRARIES)}, torch:DEVICE such as torch:cuda:0")
        return library

    @field_validator("threads")
    @classmethod
    def _not_negative(cls, threads: int) -> int:
        if threads < 0:
            raise ValueError("0 (one for each core) or more")
        return threads

    @field_validator("scale")
    @classmethod
    def _above_zero(cls, scale: float) -> float:
        if not 0 < scale <= 1000:
            raise ValueError("above 0, at most 1000")
        return scale

    @property
    def torch_device(self) -> str | None:
        return self.library.removeprefix(TORCH) if self.library.startswith(TORCH) else None

    def problem(self) -> str | None:
        """What this machine lacks for it; None: nothing. A torch device is looked for by the
        device's process, which imports torch."""
        available = os.sched_getaffinity(0)
        absent = sorted(set(self.cores) - available)
        if absent:
            return (
                f"no core {', '.join(map(str, absent))} on this machine; "
                f"there are {', '.join(map(str, sorted(available)))}"
            )
        return None


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one task on one device."""

    seconds: float = 60
    memory_mb: float = 4096  # beyond what an idle process has; not of a torch device
    nice: int = 5  # below the services, so that the machine stays usable


def settings_of(real: Mapping[str, Any], count: int = 1) -> list[DeviceSetting]:
    """The settings of equal devices by the `real` block of their type: `cores` and `library` of one
    device, or `cores` for all of them, which they share out evenly."""
    try:
        setting = DeviceSetting(**real)
    except ValidationError as error:
        problems = [
            f"real.{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()
        ]
        raise SpecError(problems) from None
    if count == 1:
        return [setting]
    each, rest = divmod(len(setting.cores), count)
    if each == 0 or rest:
        raise SpecError(
            [f"real.cores: {len(setting.cores)} cores cannot be shared equally by {count} devices"]
        )
    return [
        DeviceSetting(
            cores=setting.cores[number * each : (number + 1) * each],
            library=_numbered(setting.library, number),
            threads=setting.threads,
            copy=setting.copy,
            scale=setting.scale,
        )
        for number in range(count)
    ]


def _numbered(library: str, number: int) -> str:
    """`torch:cuda` is one device after the other; `torch:cuda:0` is always that one."""
    if library.startswith(TORCH) and library.count(":") == 1:
        return f"{library}:{number}"
    return library
