"""The little of kustomize that our overlays use, so that they can be checked where it is not there.

Names of generated ConfigMaps get no hash at their end here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

Manifest = dict[str, Any]
KNOWN = {
    "apiVersion",
    "kind",
    "namespace",
    "resources",
    "configMapGenerator",
    "images",
    "replicas",
}


def render(folder: Path) -> list[Manifest]:
    said = yaml.safe_load((folder / "kustomization.yaml").read_text())
    assert said.keys() <= KNOWN, f"this cannot render {said.keys() - KNOWN}"
    found: list[Manifest] = []
    for name in said["resources"]:
        path = folder / name
        found += render(path) if path.is_dir() else list(yaml.safe_load_all(path.read_text()))
    for generator in said.get("configMapGenerator", []):
        _config_map(found, generator)
    for image in said.get("images", []):
        _set_image(found, image)
    for wanted in said.get("replicas", []):
        (target,) = (
            each
            for each in found
            if (each["kind"], each["metadata"]["name"]) == ("Deployment", wanted["name"])
        )
        target["spec"]["replicas"] = wanted["count"]
    for manifest in found:
        if "namespace" in said and manifest["kind"] != "Namespace":
            manifest["metadata"]["namespace"] = said["namespace"]
    return found


def _config_map(found: list[Manifest], generator: Manifest) -> None:
    data = dict(literal.split("=", 1) for literal in generator["literals"])
    if generator.get("behavior") == "merge":
        (there,) = (
            each
            for each in found
            if (each["kind"], each["metadata"]["name"]) == ("ConfigMap", generator["name"])
        )
        there["data"] |= data
        return
    found.append(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": generator["name"]},
            "data": data,
        }
    )


def _set_image(found: list[Manifest], image: dict[str, str]) -> None:
    for manifest in found:
        template = manifest.get("spec", {}).get("template", {})
        for container in template.get("spec", {}).get("containers", []):
            if container["image"] == image["name"]:
                container["image"] = f"{image['newName']}:{image['newTag']}"
