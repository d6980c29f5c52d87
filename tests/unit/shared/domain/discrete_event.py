"""Independent simulations of the virtual cluster, with plain Python numbers.

They share no code with the product, so the two agree only if both follow the rules:

- `cost_of`: the price of one decision, written again from its description;
- `by_intervals`: the insertion rule. It keeps every busy interval of every device for ever, and
  tries all possible starts;
- `by_events`: first come, first served, as SimPy processes: one per device.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import simpy


@dataclass
class Kind:
    """A device type."""

    name: str
    accelerator: bool
    speed: float = 1.0
    slope: float = 0.0
    memory: float = math.inf
    bandwidth: float = math.inf
    watts: float = 30.0
    dollars: float = 0.00002


GPU = Kind("gpu", True, slope=3.0, memory=8000.0, bandwidth=16000.0, watts=50.0, dollars=0.0001)
CPU = Kind("cpu", False)


@dataclass
class Entry:
    kind: Kind
    count: int = 1
    node: str = "node"


@dataclass
class Machines:
    """A cluster, and the rules of a run."""

    entries: list[Entry] = field(default_factory=lambda: [Entry(GPU, 4), Entry(CPU)])
    nodes: dict[str, int] = field(default_factory=lambda: {"node": 1})
    network_mb_s: float = 12_500.0
    latency: float = 0.0
    split: str = "serial"
    memory_policy: str = "cpu"
    # Seconds per unit of size, by kind of task and device type; empty: the formula.
    table: dict[tuple[str, str], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        numbers: dict[str, list[int]] = {}
        for name, count in self.nodes.items():
            before = sum(len(each) for each in numbers.values())
            numbers[name] = list(range(before, before + count))
        self.devices: list[tuple[Kind, int]] = []  # type and node of each device
        for entry in self.entries:
            for node in numbers[entry.node]:
                self.devices += [(entry.kind, node)] * entry.count
        self.kinds = list({entry.kind.name: entry.kind for entry in self.entries}.values())

    def of_kind(self, name: str) -> list[int]:
        """The devices of a type, node by node."""
        found = [n for n, (kind, _) in enumerate(self.devices) if kind.name == name]
        return sorted(found, key=lambda n: (self.devices[n][1], n))

    def choose(self, job: Job) -> tuple[int | None, int | None]:
        """Accelerator and CPU: those of the decision, else in rotation."""
        accelerators = [n for n, (kind, _) in enumerate(self.devices) if kind.accelerator]
        cpus = [n for n, (kind, _) in enumerate(self.devices) if not kind.accelerator]
        device, cpu = job.device, job.cpu
        if device is None and accelerators:
            device = accelerators[job.task_id % len(accelerators)]
        if cpu is None and cpus:
            if device is not None and job.share > 0:
                cpus = [n for n in cpus if self.devices[n][1] == self.devices[device][1]]
            cpu = cpus[job.task_id % len(cpus)] if cpus else None
        return device, cpu


@dataclass
class Job:
    """One task and the decision about it."""

    task_id: int
    size: float
    intensity: float
    memory: float
    arrival: float
    share: float
    device: int | None = None
    cpu: int | None = None
    parents: list[int] = field(default_factory=list)
    kind: str = ""
    divisible: bool = True
    width: int = 1
    home: int | None = None


@dataclass
class Cost:
    gpu_time: float
    cpu_time: float
    time: float
    energy: float
    cloud: float
    failed: bool


def seconds(job: Job, kind: Kind, machines: Machines) -> float:
    """The whole task on a device type; infinite: impossible."""
    if job.width > len(machines.of_kind(kind.name)):
        return math.inf
    if machines.table:
        compute = machines.table.get((job.kind, kind.name), math.inf) * job.size
    else:
        base = (job.size / 1000.0) ** 1.5 / (job.intensity + 0.5)
        compute = base / (kind.speed * (1.0 + kind.slope * job.intensity))
    return compute + job.memory / kind.bandwidth


def cost_of(job: Job, machines: Machines) -> Cost:
    device, cpu = machines.choose(job)
    on_gpu, on_cpu = (_seconds_on(job, number, machines) for number in (device, cpu))
    share = job.share
    one_node = (
        device is not None
        and cpu is not None
        and machines.devices[device][1] == machines.devices[cpu][1]
    )
    if not job.divisible or job.width > 1 or not one_node:
        share = 1.0 if share >= 0.5 else 0.0
    if math.isinf(on_cpu):
        share = 1.0
    if math.isinf(on_gpu):
        share = 0.0
    failed = math.isinf(on_gpu) and math.isinf(on_cpu)
    accelerator = GPU if device is None else machines.devices[device][0]
    excess = max(share * job.memory - accelerator.memory * job.width, 0.0)
    if excess > 0 and machines.memory_policy == "fail":
        failed = True
    if excess > 0 and machines.memory_policy == "cpu":
        share = 0.0
        failed = failed or math.isinf(on_cpu)
    gpu = share * on_gpu if share > 0 else 0.0
    cpu_time = (1.0 - share) * on_cpu if share < 1 else 0.0
    if excess > 0 and machines.memory_policy == "page":
        gpu += excess / accelerator.bandwidth
    if failed:
        charge = _charge(job, machines)
        on_device = device is not None and (job.share > 0 or cpu is None)
        gpu, cpu_time = (charge, 0.0) if on_device else (0.0, charge)
    time = gpu + cpu_time if machines.split == "serial" else max(gpu, cpu_time)
    energy = cloud = 0.0
    for number, worked in ((device, gpu), (cpu, cpu_time)):
        if number is not None:
            kind = machines.devices[number][0]
            energy += kind.watts * worked * job.width
            cloud += kind.dollars * worked * job.width
    return Cost(gpu, cpu_time, time, energy, cloud, failed)


def _seconds_on(job: Job, number: int | None, machines: Machines) -> float:
    if number is None:
        return math.inf
    kind, node = machines.devices[number]
    return seconds(job, kind, machines) + (_moving(job, machines) if node != job.home else 0.0)


def _moving(job: Job, machines: Machines) -> float:
    if job.home is None or sum(machines.nodes.values()) == 1:
        return 0.0
    return job.memory / machines.network_mb_s + machines.latency


def _charge(job: Job, machines: Machines) -> float:
    """Seconds on the slowest type that can run it, at the worst place; 0 if there is none."""
    found = []
    for kind in machines.kinds:
        time = seconds(job, kind, machines)
        if machines.memory_policy == "page" and kind.accelerator:
            time += max(job.memory - kind.memory * job.width, 0.0) / kind.bandwidth
        if math.isfinite(time):
            found.append(time)
    return max(found) + _moving(job, machines) if found else 0.0


@dataclass
class Run:
    """When a task ran; a start is None where no part ran on such a device."""

    gpu_start: float | None
    cpu_start: float | None
    finish: float


@dataclass
class Report:
    runs: list[Run]
    busy: list[float]  # of each device


Parts = Sequence[tuple[float, float]]  # seconds on the accelerator and on the CPU, of each job


def by_intervals(
    jobs: Sequence[Job], parts: Parts, machines: Machines, *, overtaking: bool = True
) -> Report:
    """The insertion rule; without `overtaking`, each part goes behind the last one."""
    busy: list[list[tuple[float, float]]] = [[] for _ in machines.devices]
    of_kind = {kind.name: machines.of_kind(kind.name) for kind in machines.kinds}
    runs: list[Run] = []
    clock = 0.0

    def place(first: int | None, width: int, ready: float, length: float) -> float:
        assert first is not None
        same = of_kind[machines.devices[first][0].name]
        at = same.index(first)
        gang = [same[(at + step) % len(same)] for step in range(min(width, len(same)))]
        idle = [_idle(busy[number], clock) if overtaking else [] for number in gang]
        last = [busy[number][-1][1] if busy[number] else 0.0 for number in gang]
        # A part can start when it is ready, or when a gap begins on one of its devices.
        starts = {ready, *last, *(begin for gaps in idle for begin, _ in gaps)}
        for start in sorted(start for start in starts if start >= ready):
            if all(
                start >= end or any(a <= start and start + length <= b for a, b in gaps)
                for gaps, end in zip(idle, last, strict=True)
            ):
                break
        for number in gang:
            insort(busy[number], (start, start + length))
        return start

    for job, (gpu_time, cpu_time) in zip(jobs, parts, strict=True):
        clock = max(clock, job.arrival)
        device, cpu = machines.choose(job)
        # A task that waits for others is not ready before the latest arrival.
        ready = max([clock, *(runs[n].finish for n in job.parents)]) if job.parents else job.arrival
        run = Run(None, None, ready)
        if gpu_time > 0:
            run.gpu_start = place(device, job.width, ready, gpu_time)
            run.finish = run.gpu_start + gpu_time
        if cpu_time > 0:
            after = run.finish if machines.split == "serial" else ready
            run.cpu_start = place(cpu, job.width, after, cpu_time)
            run.finish = max(run.finish, run.cpu_start + cpu_time)
        runs.append(run)
    return Report(runs, [math.fsum(end - start for start, end in each) for each in busy])


def _idle(busy: list[tuple[float, float]], clock: float) -> list[tuple[float, float]]:
    """The gaps before the last interval that are not over."""
    ends = [0.0, *(end for _, end in busy)]
    begins = (begin for begin, _ in busy)
    return [gap for gap in zip(ends, begins, strict=False) if gap[0] < gap[1] > clock]


def by_events(jobs: Sequence[Job], parts: Parts, machines: Machines) -> Report:
    """First come, first served: for tasks of width 1 that wait for nothing."""
    env = simpy.Environment()
    runs = [Run(None, None, job.arrival) for job in jobs]
    busy = [0.0] * len(machines.devices)
    queues: list[list[tuple[int, bool]]] = [[] for _ in machines.devices]
    for i, (job, lengths) in enumerate(zip(jobs, parts, strict=True)):
        for number, length, on_gpu in zip(
            machines.choose(job), lengths, (True, False), strict=True
        ):
            if length > 0 and number is not None:
                queues[number].append((i, on_gpu))

    def device(number: int) -> Iterator[simpy.Event]:
        for i, on_gpu in queues[number]:
            length = parts[i][0 if on_gpu else 1]
            yield env.timeout(max(jobs[i].arrival - env.now, 0.0))
            if on_gpu:
                runs[i].gpu_start = env.now
            else:
                runs[i].cpu_start = env.now
            yield env.timeout(length)
            busy[number] += length
            runs[i].finish = max(runs[i].finish, env.now)

    for number in range(len(machines.devices)):
        env.process(device(number))
    env.run()
    return Report(runs, busy)
