"""The part of kustomize that our overlays use, to check them where it is not installed.

Names of generated ConfigMaps get no hash here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

Manifest = dict[str, Any]
SUPPORTED = {
    "apiVersion", "kind", "namespace", "resources", "configMapGenerator", "images", "replicas"
}  # fmt: skip


def render(folder: Path) -> list[Manifest]:
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    assert kustomization.keys() <= SUPPORTED
    manifests: list[Manifest] = []
    for name in kustomization["resources"]:
        path = folder / name
        manifests += render(path) if path.is_dir() else list(yaml.safe_load_all(path.read_text()))
    for generator in kustomization.get("configMapGenerator", []):
        _config_map(manifests, generator)
    for image in kustomization.get("images", []):
        _set_image(manifests, image)
    for replicas in kustomization.get("replicas", []):
        _find(manifests, "Deployment", replicas["name"])["spec"]["replicas"] = replicas["count"]
    for manifest in manifests:
        if "namespace" in kustomization and manifest["kind"] != "Namespace":
            manifest["metadata"]["namespace"] = kustomization["namespace"]
    return manifests


def _config_map(manifests: list[Manifest], generator: Manifest) -> None:
    data = dict(literal.split("=", 1) for literal in generator["literals"])
    if generator.get("behavior") == "merge":
        _find(manifests, "ConfigMap", generator["name"])["data"] |= data
        return
    metadata = {"name": generator["name"]}
    manifests.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


def _find(manifests: list[Manifest], *kind_and_name: str) -> Manifest:
    (one,) = (m for m in manifests if (m["kind"], m["metadata"]["name"]) == kind_and_name)
    return one


def _set_image(manifests: list[Manifest], image: dict[str, str]) -> None:
    for manifest in manifests:
        template = manifest.get("spec", {}).get("template", {})
        for container in template.get("spec", {}).get("containers", []):
            if container["image"] == image["name"]:
                container["image"] = f"{image['newName']}:{image['newTag']}"
