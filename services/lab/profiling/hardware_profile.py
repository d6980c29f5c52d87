"""`hardware_profile.json`: the measurements of a machine, and the physics derived from them.

A task of size N and intensity 1 is the float32 product of two square matrices with
16,384 N elements each, that is of edge 128 sqrt(N). A product of edge n takes 2 n^3 operations, so
its time grows with the size to the power of 1.5, as in the physics. Matrix products are the most
compute-intensive work: the speed-up measured on them is that of intensity 1.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    computed_field,
    model_validator,
)

from shared.domain.hardware.cluster_spec import Cluster
from shared.domain.spec import Physics, RunSpec
from shared.domain.validation_messages import explain
from shared.errors import ArenaError, SpecError

VERSION = 1
EDGE_OF_SIZE_1 = 128
# Smaller products measure the call of the library as well; tasks of the presets are larger.
SMALLEST_EDGE = 512
# A spread or a CPU load above this means that the machine was busy.
BUSY = 0.2
# A larger difference of the fitted exponent from that of the physics is a warning.
EXPONENT_TOLERANCE = 0.1

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class ProfileError(ArenaError):
    """A hardware profile that cannot be used."""


class Part(BaseModel):
    """Computed fields are written for readers and ignored when the file is read."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _without_computed(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        return {key: value for key, value in data.items() if key not in cls.model_computed_fields}


class Timing(Part):
    repetitions: int = Field(ge=1)
    median_s: Positive
    spread: NonNegative = Field(description="interquartile range as a share of the median")


class Product(Timing):
    """Two square float32 matrices multiplied."""

    edge: int = Field(ge=1, le=1_000_000)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def gflop_s(self) -> float:
        return round(2 * self.edge**3 / self.median_s / 1e9, 3)


class Transfer(Timing):
    """A memory transfer; `mb` counts bytes read and bytes written."""

    mb: Positive

    @computed_field  # type: ignore[prop-decorator]
    @property
    def mb_s(self) -> float:
        return round(self.mb / self.median_s, 1)


class Machine(Part):
    system: str
    cpu: str
    cores: int = Field(ge=1)
    memory_mb: Positive
    cache_mb: NonNegative = Field(description="the largest cache; 0: unknown")
    threads: int = Field(ge=1, description="of the matrix library")
    blas: str
    versions: dict[str, str]
    environment: dict[str, str] = Field(description="variables that set numbers of threads")
    busy_before: NonNegative = Field(description="share of the CPU used by other processes")


class Cpu(Part):
    products: tuple[Product, ...] = Field(min_length=1)
    copy_: Transfer = Field(alias="copy", description="b[:] = a")
    add: Transfer = Field(description="c[:] = a + b")


class Gpu(Part):
    """The first device of `count`."""

    backend: str
    name: str
    count: int = Field(ge=1, le=64)
    memory_mb: Positive
    details: dict[str, str] = {}
    products: tuple[Product, ...] = Field(min_length=1)
    to_device: tuple[Transfer, ...] = Field(min_length=1)
    to_host: tuple[Transfer, ...] = Field(min_length=1)


class Constant(BaseModel):
    """A field of the RunSpec with its value from the profile."""

    model_config = ConfigDict(frozen=True)

    field: str = Field(description="such as physics.size_unit")
    value: float
    measured: bool
    why: str

    @property
    def part(self) -> str:
        return self.field.partition(".")[0]

    @property
    def name(self) -> str:
        return self.field.partition(".")[2]


class Profile(Part):
    version: Literal[1]
    measured_at: datetime
    dtype: Literal["float32"]
    machine: Machine
    cpu: Cpu
    gpu: Gpu | None = None
    gpu_problem: str = Field(default="", description="why a GPU that was found was not measured")

    @model_validator(mode="after")
    def _calibrates(self) -> Profile:
        if not self.usable():
            raise ValueError(f"cpu.products: no edge of {SMALLEST_EDGE} or more")
        if self.gpu is not None and not self._speedups():
            raise ValueError(
                "gpu.products: no edge of 512 or more that was also measured on the CPU"
            )
        try:
            RunSpec.parse(_nested(self.calibration))
        except SpecError as error:
            raise ValueError(f"calibrates to {'; '.join(error.problems)}") from None
        return self

    def usable(self) -> list[Product]:
        """The products that are used for the calibration."""
        return [product for product in self.cpu.products if product.edge >= SMALLEST_EDGE]

    def _speedups(self) -> list[float]:
        on_gpu = {product.edge: product for product in self.gpu.products} if self.gpu else {}
        return [
            on_cpu.median_s / on_gpu[on_cpu.edge].median_s
            for on_cpu in self.usable()
            if on_cpu.edge in on_gpu
        ]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def fitted_exponent(self) -> float | None:
        """The exponent of the size in the CPU's times: a check of the 1.5 of the physics."""
        sizes = [size_of(product.edge) for product in self.usable()]
        if len(set(sizes)) < 2:
            return None
        times = [product.median_s for product in self.usable()]
        return round(float(np.polyfit(np.log(sizes), np.log(times), 1)[0]), 3)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def calibration(self) -> tuple[Constant, ...]:
        return tuple(self._constants())

    @computed_field  # type: ignore[prop-decorator]
    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(_warnings(self))

    def _constants(self) -> Iterator[Constant]:
        default, cluster = Physics(), Cluster()

        def measured(field: str, value: float, why: str) -> Constant:
            return Constant(field=field, value=value, measured=True, why=why)

        def assumed(field: str, value: float, why: str) -> Constant:
            return Constant(field=field, value=value, measured=False, why=why)

        at_full_intensity = 1 + default.intensity_offset
        units = [
            size_of(product.edge)
            / (at_full_intensity * product.median_s) ** (1 / default.size_exponent)
            for product in self.usable()
        ]
        speed = statistics.median(product.gflop_s for product in self.usable())
        yield measured(
            "physics.size_unit", _four_digits(statistics.median(units)), f"CPU, {speed:.4g} GFLOP/s"
        )
        yield assumed("physics.size_exponent", default.size_exponent, "operations of a product")
        yield assumed("physics.intensity_offset", default.intensity_offset, "not machine-dependent")
        if self.gpu is None:
            why = "no GPU was measured"
            yield assumed("physics.speedup_slope", default.speedup_slope, why)
            yield assumed("physics.bandwidth_mb_s", default.bandwidth_mb_s, why)
            yield assumed("cluster.gpus", cluster.gpus, why)
            yield assumed("cluster.gpu_memory_mb", cluster.gpu_memory_mb, why)
        else:
            speedup = statistics.median(self._speedups())
            transfer = max(self.gpu.to_device, key=lambda transfer: transfer.mb)
            yield measured(
                "physics.speedup_slope",
                _four_digits(max(speedup - 1, 0)),
                f"GPU, {speedup:.4g} times the CPU",
            )
            yield measured(
                "physics.bandwidth_mb_s",
                _four_digits(transfer.mb / transfer.median_s),
                f"blocks of {transfer.mb:.4g} MB to the GPU",
            )
            yield measured("cluster.gpus", self.gpu.count, f"all assumed to be {self.gpu.name}")
            yield measured("cluster.gpu_memory_mb", self.gpu.memory_mb, "of the first GPU")
        yield assumed("cluster.cpus", cluster.cpus, "all cores count as one CPU")
        for price in (
            "gpu_watts", "cpu_watts", "gpu_dollars_per_s", "cpu_dollars_per_s", "dollars_per_kwh",
        ):  # fmt: skip
            yield assumed(f"physics.{price}", getattr(default, price), "not measured")


def size_of(edge: int) -> float:
    """The size of the task that corresponds to a product of this edge."""
    return (edge / EDGE_OF_SIZE_1) ** 2


def calibrated(profile: Profile) -> dict[str, Any]:
    """The measured fields of a run spec; the user's spec is merged over them."""
    return _nested(constant for constant in profile.calibration if constant.measured)


def load(path: Path) -> Profile:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ProfileError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ProfileError(f"{path}: not JSON, so not a hardware profile: {error}") from None
    return parse(data, str(path))


def parse(data: Any, source: str) -> Profile:
    if not isinstance(data, dict) or "version" not in data:
        what = "a run spec" if _is_spec(data) else "something else"
        raise ProfileError(
            f"{source}: {what}, not a hardware profile; measure one with `hybrid profile`"
        )
    if data["version"] != VERSION:
        raise ProfileError(
            f"{source}: version {data['version']!r} of the hardware profile, but only {VERSION} "
            "can be read; measure again with `hybrid profile`"
        )
    try:
        return Profile.model_validate(data)
    except ValidationError as error:
        first, *others = explain(error, Profile, "profile")
        more = f" (and {len(others)} more)" if others else ""
        raise ProfileError(f"{source}: {first}{more}") from None


def _is_spec(data: Any) -> bool:
    return isinstance(data, dict) and bool(data) and set(data) <= set(RunSpec.model_fields)


def _nested(constants: Iterable[Constant]) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    for constant in constants:
        is_count = constant.name in ("cpus", "gpus")
        value = int(constant.value) if is_count else constant.value
        spec.setdefault(constant.part, {})[constant.name] = value
    return spec


def _four_digits(value: float) -> float:
    """More digits would be noise."""
    return float(f"{value:.4g}")


def _warnings(profile: Profile) -> Iterator[str]:
    if profile.gpu_problem:
        yield f"a GPU was found but could not be measured: {profile.gpu_problem}"
    if profile.machine.busy_before > BUSY:
        yield f"other processes used {profile.machine.busy_before:.0%} of the CPU beforehand"
    timings: list[tuple[str, Timing]] = [
        (f"CPU product of edge {product.edge}", product) for product in profile.usable()
    ]
    timings += [("memory copy", profile.cpu.copy_), ("memory add", profile.cpu.add)]
    if profile.gpu is not None:
        largest = max(profile.gpu.to_device, key=lambda transfer: transfer.mb)
        timings += [
            (f"GPU product of edge {product.edge}", product)
            for product in profile.gpu.products
            if product.edge >= SMALLEST_EDGE
        ]
        timings.append((f"transfer of {largest.mb:.4g} MB to the GPU", largest))
    unsteady = [f"{what} ±{timing.spread:.0%}" for what, timing in timings if timing.spread > BUSY]
    if unsteady:
        yield f"repetitions differ, the machine was busy: {', '.join(unsteady)}"
    if profile.machine.cache_mb * 1.5 > profile.cpu.copy_.mb / 2:
        yield "the copied arrays hardly exceed the cache: this may be the bandwidth of the cache"
    exponent = Physics().size_exponent
    fitted = profile.fitted_exponent
    if fitted is not None and abs(fitted - exponent) > EXPONENT_TOLERANCE:
        yield f"times grow with size^{fitted:.2f}, the physics uses {exponent:g}"
    if profile.gpu is not None and statistics.median(profile._speedups()) < 1:
        yield "the GPU is slower than the CPU; the physics allows no speed-up below 1"
