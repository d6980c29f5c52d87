"""Networks that were trained elsewhere, such as in the gym: `hybrid up --add policy.onnx`.

The network's input are observations (see `shared.domain.learning.agent_observation`), a row for
each task. Its output is a score for each device, of which the highest is chosen, or the number of
the device.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from services.scheduler.policy import ClusterPolicy, PolicyError
from shared.domain.cluster.cluster_view import ClusterView
from shared.domain.learning.agent_observation import (
    TIME_SCALE_KEY,
    AgentObserver,
    Numbers,
    TaskRows,
)
from shared.domain.schedulers import check_scheduler_name
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Floats, Tasks
from shared.messages.forest_model import open_model

if TYPE_CHECKING:
    from onnxruntime import InferenceSession


class OnnxPolicy(ClusterPolicy):
    """A network from an ONNX file, trained on the arena's observations."""

    path: ClassVar[Path]

    def __init__(self) -> None:
        self._session = _open(self.path)
        self._input = self._session.get_inputs()[0].name
        stored = self._session.get_modelmeta().custom_metadata_map.get(TIME_SCALE_KEY)
        self._time_scale = None if stored is None else float(stored)
        self._known: tuple[RunSpec, AgentObserver] | None = None

    def prepare(self, tasks: Tasks, spec: RunSpec) -> TaskRows:
        return self._observer(spec).rows(tasks)

    def decide(self, tasks: Tasks, cluster: ClusterView, spec: RunSpec) -> Decisions:
        observer, rows = self._observer(spec), cluster.prepared
        row: Numbers = np.empty((1, observer.width), np.float32)
        for number in cluster.arrivals():
            finish = cluster.finish() - cluster.now
            queued = cluster.queued()
            observer.fill(row[0], rows.task[number], rows.types[number], queued, finish)
            device, scores = self._choose(row, observer.devices)
            cluster.place(device, scores=scores)
        return cluster.decisions()

    def _choose(self, row: Numbers, devices: int) -> tuple[int, Floats | None]:
        output = np.asarray(self._session.run(None, {self._input: row})[0])
        if np.issubdtype(output.dtype, np.integer) and output.size == 1:
            return int(output.reshape(-1)[0]), None
        if output.size != devices:
            raise PolicyError(f"{self.path.name} has {output.size} scores for {devices} devices")
        scores = output.reshape(-1).astype(np.float64)
        if np.isnan(scores).any():
            raise PolicyError(f"{self.path.name} has a score that is not a number")
        return int(scores.argmax()), -scores  # people are shown scores of which the lowest is best

    def _observer(self, spec: RunSpec) -> AgentObserver:
        if self._known is None or self._known[0] is not spec:
            observer = AgentObserver(spec, self._time_scale)
            width = self._session.get_inputs()[0].shape[-1]
            if isinstance(width, int) and width != observer.width:
                raise PolicyError(
                    f"{self.path.name} takes {width} numbers, and an observation of this cluster's "
                    f"{observer.devices} devices has {observer.width}: it was trained for another"
                )
            self._known = spec, observer
        return self._known[1]


def load_onnx(path: Path) -> OnnxPolicy:
    """The scheduler has the name of the file."""
    if not path.is_file():
        raise PolicyError(f"no such file: {path}")
    try:
        name = check_scheduler_name(path.stem)
    except ValueError as error:
        raise PolicyError(f"{path}: {error}; rename the file") from None
    members = {"name": name, "path": path, "__doc__": f"The network of {path.name}."}
    policy: OnnxPolicy = type("FromFile", (OnnxPolicy,), members)()
    return policy


def _open(path: Path) -> InferenceSession:
    try:
        session = open_model(path.read_bytes())
    except Exception as error:
        raise PolicyError(f"{path} cannot be opened as ONNX: {error}") from error
    inputs = session.get_inputs()
    if len(inputs) != 1 or inputs[0].type != "tensor(float)":
        description = ", ".join(f"{each.name}: {each.type}" for each in inputs)
        raise PolicyError(f"{path}: one input of 32-bit floats expected, found: {description}")
    return session
