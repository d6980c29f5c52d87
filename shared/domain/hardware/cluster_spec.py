"""The devices, nodes and network of a run's cluster.

A cluster is a list of devices, or the short form `cpus`, `gpus`, `gpu_memory_mb`: one node with
that many CPUs and equal GPUs. What the list leaves out of a device has the value that the short
form's GPU or CPU has (see `shared.domain.hardware.platform`).
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field, field_validator, model_validator

from shared.domain.spec_model import NonNegative, Positive, SpecModel, problem_at

MOST_DEVICES = 100_000
SHORT_FORM = ("cpus", "gpus", "gpu_memory_mb")
# What two entries of the same type may differ in.
OF_THE_ENTRY = {"count", "node"}

Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,31}$")]
Count = Annotated[int, Field(ge=1, le=MOST_DEVICES)]


class RealDevice(SpecModel):
    """What a device is on the machine of the executor. What is left out has the default of
    shared/execution/settings.py, which says what each field means."""

    # The name `copy` is taken in pydantic.
    model_config = ConfigDict(serialize_by_alias=True)

    cores: tuple[int, ...] | None = Field(
        default=None, description="that it is pinned to; equal devices share them out evenly"
    )
    library: str | None = Field(
        default=None, description="plain, blas, or a device of torch: torch:cuda, torch:mps"
    )
    threads: int | None = Field(default=None, description="of the library; 0: one for each core")
    copy_data: bool | None = Field(
        default=None, alias="copy", description="whether a task's memory is really copied to it"
    )
    scale: Positive | None = Field(default=None, description="factor of the data of a task")

    def explicit_fields(self) -> dict[str, Any]:
        """What it says, by the names of the spec."""
        return self.model_dump(exclude_none=True)


class Device(SpecModel):
    """Equal devices of a node. Further entries of a type only need its name, count and node."""

    type: Name = Field(description="cpu, v100, tpu, any name")
    count: Count = 1
    node: Name = Field(default="node", description="where it is: one of the names in `nodes`")
    accelerator: bool | None = Field(
        default=None, description="false: it is a CPU; left out: a CPU if the type begins with cpu"
    )
    memory_mb: Positive | None = Field(
        default=None,
        description="of an accelerator; left out: 8000. A task always fits the memory of a CPU",
    )
    bandwidth_mb_s: Positive | None = Field(
        default=None,
        description="to the device; left out: 16000 for an accelerator, no transfer for a CPU",
    )
    speed: Positive = Field(default=1, description="1: the CPU that takes 1 s for size 1000")
    speedup_slope: NonNegative | None = Field(
        default=None,
        description="speed * (1 + slope * intensity); left out: 3 for an accelerator, 0 for a CPU",
    )
    watts: NonNegative | None = Field(default=None, description="while it works")
    idle_watts: NonNegative = Field(default=0, description="while it does not")
    dollars_per_s: NonNegative | None = Field(default=None, description="while it works")
    real: RealDevice | None = Field(
        default=None, description="what it is on the executor's machine, for real runs"
    )

    @property
    def is_accelerator(self) -> bool:
        if self.accelerator is not None:
            return self.accelerator
        return not self.type.lower().startswith("cpu")


class Node(SpecModel):
    """Equal nodes: each has the devices whose `node` is this name."""

    name: Name
    count: Count = 1


class Network(SpecModel):
    """Between any two nodes."""

    bandwidth_mb_s: Positive = Field(default=12_500, description="100 Gbit/s")
    latency_s: NonNegative = 0


class Cluster(SpecModel):
    """The virtual cluster that every scheduler gets one of."""

    cpus: int = Field(default=1, ge=1, le=64, description="short form: CPUs of one node")
    gpus: int = Field(default=4, ge=1, le=64, description="short form: equal GPUs of that node")
    gpu_memory_mb: Positive = Field(default=8000, description="short form: memory of each GPU")
    devices: tuple[Device, ...] = Field(default=(), description="left out: the short form")
    nodes: tuple[Node, ...] = Field(
        default=(), description="how many there are of each node; left out: one of each"
    )
    network: Network = Network()

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, data: Any) -> Any:
        if not isinstance(data, dict) or not data.get("devices"):
            return data
        both = [name for name in SHORT_FORM if name in data and data[name] != _default(cls, name)]
        if both:
            raise problem_at(
                f"{' and '.join(both)} cannot be given beside `devices`: use one form", both[0]
            )
        devices = data["devices"]
        return {**data, "devices": _repeated(devices) if isinstance(devices, list) else devices}

    @field_validator("devices")
    @classmethod
    def _one_description_of_a_type(cls, devices: tuple[Device, ...]) -> tuple[Device, ...]:
        first: dict[str, Device] = {}
        places = set()
        for number, device in enumerate(devices):
            same = first.setdefault(device.type, device)
            for name in Device.model_fields.keys() - OF_THE_ENTRY:
                if getattr(same, name) != getattr(device, name):
                    raise problem_at(
                        f"device {number} is another {device.type} than the one before: {name} is "
                        f"{getattr(device, name)}, not {getattr(same, name)}; give it another type",
                        number,
                        name,
                    )
            if (device.type, device.node) in places:
                raise problem_at(
                    f"device {number}: {device.type} in node {device.node} is listed twice; "
                    "add the counts up",
                    number,
                )
            places.add((device.type, device.node))
        return devices

    @model_validator(mode="after")
    def _nodes_fit_the_devices(self) -> Cluster:
        if not self.devices:
            if self.nodes:
                raise problem_at("the short form has one node; list `devices` instead", "nodes")
            return self
        counts = self.node_counts
        for number, device in enumerate(self.devices):
            if device.node not in counts:
                message = f"no node {device.node}; in `nodes` are {', '.join(counts)}"
                raise problem_at(message, "devices", number, "node")
        total = sum(device.count * counts[device.node] for device in self.devices)
        if total > MOST_DEVICES:
            raise ValueError(f"{total:,} devices; at most {MOST_DEVICES:,}")
        self._check_names()
        return self

    def _check_names(self) -> None:
        used = {device.node for device in self.devices}
        known: set[str] = set()
        for number, node in enumerate(self.nodes):
            if node.name not in used:
                message = f"{node.name} has no devices: name it as the node of a device"
                raise problem_at(message, "nodes", number)
            names = [node.name, *numbered(node.name, node.count)]
            if again := [name for name in names if name in known]:
                message = f"{again[0]} is the name of two nodes; add their counts, or rename one"
                raise problem_at(message, "nodes", number)
            known.update(names)

    @property
    def node_counts(self) -> dict[str, int]:
        """How many there are of each node."""
        if self.nodes:
            return {node.name: node.count for node in self.nodes}
        return {device.node: 1 for device in self.devices} or {"node": 1}


def numbered(name: str, count: int) -> list[str]:
    """The names of equal nodes."""
    return [name] if count == 1 else [f"{name}-{number}" for number in range(count)]


def _default(model: type[SpecModel], name: str) -> Any:
    return model.model_fields[name].default


def _repeated(devices: list[Any]) -> list[Any]:
    """Entries of a type that was described before, with what they leave out."""
    known: dict[Any, dict[str, Any]] = {}
    complete = []
    for device in devices:
        if isinstance(device, dict) and isinstance(device.get("type"), str):
            before = known.setdefault(device["type"], device)
            inherited = {name: before[name] for name in before.keys() - OF_THE_ENTRY}
            device = {**inherited, **device}
        complete.append(device)
    return complete
