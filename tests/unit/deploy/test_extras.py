"""torch and chdb, the largest packages: only the trainer and the embedded store load them."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from deploy import torch_build
from shared.domain.schedulers import BUILT_IN
from shared.runtime import extras
from shared.runtime.extras import NotInstalled, require

ROOT = Path(__file__).parents[3]
SERVICES = ("generator", "scheduler", "simulator", "executor", "recorder", "gateway")
MISSING = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "chdb"):
            raise ModuleNotFoundError(f"{name} is not in this image")
sys.meta_path.insert(0, Missing())
"""


def test_services_and_their_policies_need_neither_torch_nor_chdb() -> None:
    """In an image without them; with every policy, as its worker loads it."""
    modules = [f"services.{name}.app" for name in SERVICES]
    program = (
        f"{MISSING}\nimport importlib\nfor name in {modules}: importlib.import_module(name)\n"
        "from services.scheduler.policy import load\n"
        f"for name in {BUILT_IN!r}: load(name)\n"
        "assert not {'torch', 'chdb'} & sys.modules.keys()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr


def test_the_extras_hold_them_and_dev_has_all() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"]
    for package, (extra, _) in extras.EXTRAS.items():
        distribution = package.replace(".", "-")
        assert any(each.startswith(distribution) for each in optional[extra])
        assert not any(each.startswith(distribution) for each in project["dependencies"])
    assert f"{project['name']}[embedded,tracing,train]" in optional["dev"]
    assert "torch==2.13.0" in (ROOT / "constraints.txt").read_text().split()


def test_a_missing_package_is_an_error_that_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    require("torch", "chdb")
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(NotInstalled, match=r"the trainer.* needs torch.*scheduler\[train\]"):
        require("torch")
    with pytest.raises(NotInstalled, match=r"hybrid up.* needs chdb.*scheduler\[embedded\]"):
        require("chdb")


@pytest.mark.parametrize(
    ("text", "cuda"),
    [
        ("__version__ = '2.13.0+cpu'\ncuda: Optional[str] = None\n", None),
        ("__version__ = '2.13.0'\ncuda: Optional[str] = '13.0'\nhip = None\n", "13.0"),
        ("__version__ = '2.13.0'\ncuda = '12.8'\n", "12.8"),
    ],
)
def test_a_cuda_build_without_a_gpu_is_a_warning(
    text: str, cuda: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "torch"
    package.mkdir()
    (package / "version.py").write_text(text)
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert torch_build.cuda_version() == cuda
    shown = torch_build.warning(cuda, gpu=False)
    assert (shown is None) == (cuda is None)
    if shown and cuda:
        assert f"CUDA {cuda}" in shown
        assert "TORCH_INDEX" in shown
    assert torch_build.warning(cuda, gpu=True) is None


def test_a_gpu_is_found_by_its_device_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_build.shutil, "which", lambda name: None)
    assert not torch_build.has_gpu(tmp_path)
    (tmp_path / "nvidia0").touch()
    assert torch_build.has_gpu(tmp_path)
