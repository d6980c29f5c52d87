"""Write the generated manifests: `python -m deploy.kubernetes`."""

from __future__ import annotations

from pathlib import Path

import yaml

from deploy.kubernetes import scaling, stores, workloads
from deploy.kubernetes.workloads import Manifest

HERE = Path(__file__).parent
HEADER = "# Written by `python -m deploy.kubernetes` from the Python files there: edit those.\n"


class _Dumper(yaml.SafeDumper):
    """Writes files inside a manifest as blocks, and repeats values instead of using aliases."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, "|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def files() -> dict[Path, str]:
    manifests: dict[str, list[Manifest]] = {
        "base/workloads.yaml": workloads.manifests(),
        "single/config.yaml": stores.config_maps(),
        "cluster/clickhouse.yaml": [stores.clickhouse_installation()],
        "cluster/scaling.yaml": scaling.manifests(),
    }
    return {
        HERE / name: HEADER + yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False)
        for name, documents in manifests.items()
    }


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text)
