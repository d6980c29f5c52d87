"""The style of the figures: one colour and one marker for each scheduler.

The colours are Okabe and Ito's and Tol's, safe for colour-blind readers. The HTML report replaces
INK, MUTED and FAINT by its own variables, which follow the reader's light or dark theme.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from shared.domain.schedulers import (
    AGENT,
    ATTENTION,
    BANDIT,
    CLAIRVOYANT,
    FOREST,
    ORACLE,
    PREDICTIVE,
)

INK = "#23272f"
FAINT = "#d5d9e0"
MUTED = "#6b7280"
WIDTH = 7.1  # inches: A4 less its margins

_KNOWN = {
    ORACLE: ("#7a7f87", "*"),
    FOREST: ("#0072b2", "o"),
    AGENT: ("#cc79a7", "s"),
    "greedy": ("#009e73", "^"),
    "round_robin": ("#e69f00", "D"),
    "random": ("#d55e00", "v"),
    "cpu_only": ("#8c6d46", "P"),
    "gpu_only": ("#56b4e9", "X"),
    "frozen_forest": ("#882255", "h"),
    "least_loaded": ("#44aa99", "<"),
    "eft": ("#117733", "8"),
    "heft": ("#6a51a3", "p"),
    PREDICTIVE: ("#004488", ">"),
    ATTENTION: ("#aa3377", "H"),
    BANDIT: ("#bb5566", "1"),
    CLAIRVOYANT: ("#23272f", "d"),
}  # fmt: skip
_MORE = [("#999933", "4"), ("#b15928", "3"), ("#332288", "2"), ("#aa4499", "+"), ("#661100", "x")]

RC: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 7.5,
    "axes.titlesize": 8,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 7.5,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.5,
    "text.color": INK,
    "text.parse_math": False,  # a $ in a name is a $
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "lines.markersize": 4,
    "patch.linewidth": 0.6,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "white",
    "svg.hashsalt": "hybrid",  # the same figure is the same file
    "svg.fonttype": "path",
    "image.composite_image": False,
}


class Palette:
    """Colours and markers of the schedulers; plug-ins get the unused ones, by name."""

    def __init__(self, schedulers: Iterable[str]) -> None:
        unknown = sorted(set(schedulers) - set(_KNOWN))
        self._styles = dict(_KNOWN)
        for i, name in enumerate(unknown):
            self._styles[name] = _MORE[i % len(_MORE)]

    def colour(self, scheduler: str) -> str:
        return self._styles[scheduler][0]

    def marker(self, scheduler: str) -> str:
        return self._styles[scheduler][1]
