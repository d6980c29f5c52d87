"""Completes a trained network, exported to ONNX, for `hybrid up --add policy.onnx`."""

from __future__ import annotations

from pathlib import Path

from shared.domain.learning.agent_observation import TIME_SCALE_KEY


def store_time_scale(path: Path, time_scale: float) -> None:
    """Write the environment's `time_scale` into the file: the network was trained with times in
    this unit, and needs the same unit in runs of any other workload."""
    import onnx

    model = onnx.load(path)
    onnx.helper.set_model_props(
        model, {**{p.key: p.value for p in model.metadata_props}, TIME_SCALE_KEY: repr(time_scale)}
    )
    onnx.save(model, path)
