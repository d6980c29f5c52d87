"""`--platform`: a shipped platform's name or a file, as fields of a run spec."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from services.cli.profile import merge_profile
from services.lab.experiments.declaration import merged
from services.lab.platforms.hardware_profile import import_profile
from services.lab.profiling.hardware_profile import load as load_profile
from shared.domain.hardware.cluster_spec import Cluster
from shared.errors import SpecError
from shared.platforms.certificate_file import find_certificate
from shared.platforms.platform_file import PlatformFile, find


def platform_of(name_or_file: str) -> PlatformFile:
    """Also reads the JSON file of `hybrid profile`."""
    path = Path(name_or_file)
    if path.suffix == ".json":
        return import_profile(load_profile(path), "this-machine").platform()
    return find(name_or_file)


def merge_machine(
    cluster: Path | None, platform: str | None, spec: dict[str, Any]
) -> dict[str, Any]:
    """The spec with the values of the hardware profile or the platform for what it lacks."""
    if platform is None:
        return merge_profile(cluster, spec)
    if cluster is not None:
        raise SpecError(["--cluster and --platform both describe the machines: give one of them"])
    return merge_platform(platform, spec)


def merge_platform(platform: str | None, spec: dict[str, Any]) -> dict[str, Any]:
    """The spec with the platform's values for the fields that it lacks."""
    if platform is None:
        return spec
    file = platform_of(platform)
    own = _devices_in(spec)
    if own:
        raise SpecError(
            [f"cluster.{name}: platform {file.name} has its own; remove it from the spec, or leave "
             "--platform out" for name in own]
        )  # fmt: skip
    certificate = find_certificate(platform, file)
    own_fields = {"certificate": certificate.model_dump()} if certificate else {}
    return merged({**file.spec_fields(), **own_fields}, spec)


def _devices_in(spec: dict[str, Any]) -> list[str]:
    """The fields of a spec that say which devices there are."""
    cluster = spec.get("cluster") or {}
    default = Cluster().model_dump(mode="json")
    return [name for name, value in cluster.items() if name != "network" and value != default[name]]
