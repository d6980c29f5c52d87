"""A hardware profile as a platform file, with the same physics as `--cluster` gives."""

from __future__ import annotations

from typing import Any

from services.lab.platforms.imported import Imported
from services.lab.profiling.hardware_profile import Profile
from shared.domain.hardware.cluster_spec import Cluster


def import_profile(profile: Profile, name: str) -> Imported:
    constants = {each.field: each for each in profile.calibration}
    short_form = Cluster()

    def measured(field: str) -> dict[str, Any]:
        """The field by its name within a device, if it was measured."""
        constant = constants[field]
        key = constant.name.removeprefix("gpu_")
        return {key: constant.value} if constant.measured else {}

    gpu = {
        "type": "gpu",
        "count": profile.gpu.count if profile.gpu else short_form.gpus,
        "memory_mb": short_form.gpu_memory_mb,
        **measured("cluster.gpu_memory_mb"),
        **measured("physics.bandwidth_mb_s"),
        **measured("physics.speedup_slope"),
    }
    machine = profile.machine
    gpus = f", {profile.gpu.count} x {profile.gpu.name}" if profile.gpu else ""
    return Imported(
        {
            "name": name,
            "description": f"{machine.cpu}, {machine.threads} threads{gpus}.",
            "sources": [f"`hybrid profile` at {profile.measured_at:%Y-%m-%d %H:%M} UTC"],
            "cluster": {"devices": [gpu, {"type": "cpu", "count": short_form.cpus}]},
            "physics": {"size_unit": constants["physics.size_unit"].value},
        },
        took=[
            f"{each.field} {each.value:g} ({each.why})" for each in constants.values()
            if each.measured
        ],
        left_out=["memory bandwidth: no constant of the physics comes from it"],
        assumed=[
            f"{each.field}: {each.value:g}, {each.why}" for each in constants.values()
            if not each.measured
        ],
    )  # fmt: skip
