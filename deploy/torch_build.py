"""Warns of a CUDA build of torch on a machine without a GPU: python -m deploy.torch_build"""

from __future__ import annotations

import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

CUDA = re.compile(r"^cuda\b[^=]*= '([^']+)'", re.MULTILINE)


def cuda_version() -> str | None:
    """The CUDA version of the installed torch; None: a CPU build. Read from its file, since
    importing takes seconds."""
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    match = CUDA.search(Path(spec.origin).with_name("version.py").read_text())
    return match[1] if match else None


def has_gpu(devices: Path = Path("/dev")) -> bool:
    return any(devices.glob("nvidia[0-9]*")) or shutil.which("nvidia-smi") is not None


def warning(cuda: str | None, gpu: bool) -> str | None:
    if cuda is None or gpu:
        return None
    return (
        f"warning: torch was installed with CUDA {cuda} (several GB), but this machine has no "
        "NVIDIA GPU; it works anyway. For the CPU build: `make clean`, then `make setup "
        "TORCH_INDEX=...` with PyTorch's index of CPU builds (see README.md)"
    )


if __name__ == "__main__" and (text := warning(cuda_version(), has_gpu())):
    print(text, file=sys.stderr)
