"""A RunSpec from the command line's options, a spec file and a platform."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from services.cli.platforms.option import merge_machine
from shared.domain.spec import RunSpec, read_mapping


def spec_from(
    spec: Path | None,
    tasks: int | None,
    pace: str | None,
    seed: int | None,
    preset: str | None,
    cluster: Path | None = None,
    platform: str | None = None,
) -> dict[str, Any]:
    """Options take precedence over the spec file, and that over the platform or hardware profile.

    Validated here, so that a mistake is reported without an arena.
    """
    data = read_mapping(spec) if spec else {}
    # Whether a real run can be executed depends on the devices, which a platform may give.
    own = {k: v for k, v in data.items() if k != "execution"} if isinstance(data, dict) else data
    RunSpec.parse(own)
    data = merge_machine(cluster, platform, dict(data or {}))
    for key, value in (("tasks", tasks), ("pace", pace), ("seed", seed)):
        if value is not None:
            data[key] = value
    if preset is not None:
        data["workload"] = {**(data.get("workload") or {}), "preset": preset}
    return RunSpec.parse(data).model_dump(mode="json", exclude_unset=True)
