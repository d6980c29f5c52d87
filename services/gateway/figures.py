"""Figures of a race: ranking and progress, as the interface shows them."""

from __future__ import annotations

from pydantic import BaseModel, Field

from services.gateway.shapes import example


class WeightsShape(BaseModel):
    time: float
    energy: float
    cost: float


class Ranked(BaseModel):
    rank: int = Field(description="1 is best; equal scores share one")
    name: str
    score: float = Field(description="1 is best in everything that counts; lower is better")
    pareto: bool = Field(description="nobody beats it in one measure without losing in another")
    avg_time: float
    avg_energy: float
    avg_cost: float


class Ranking(BaseModel):
    model_config = example(
        run="1116-081502-6a1f",
        weights={"time": 1, "energy": 0.5, "cost": 0},
        ranking=[
            {
                "rank": 1,
                "name": "oracle",
                "score": 1.02,
                "pareto": True,
                "avg_time": 0.11,
                "avg_energy": 4.3,
                "avg_cost": 6.1e-6,
            }
        ],
    )

    run: str
    weights: WeightsShape
    ranking: list[Ranked]


class Track(BaseModel):
    """Totals of one scheduler after some of its batches; the last is the newest."""

    tasks: list[int]
    total_time: list[float]
    total_energy: list[float]
    total_cost: list[float]


class Progress(BaseModel):
    model_config = example(
        run="1116-081502-6a1f",
        schedulers={
            "greedy": {
                "tasks": [50, 225, 400],
                "total_time": [5.8, 26.0, 46.1],
                "total_energy": [245.0, 1101.5, 1960.2],
                "total_cost": [0.0004, 0.0018, 0.0032],
            }
        },
    )

    run: str
    schedulers: dict[str, Track]
