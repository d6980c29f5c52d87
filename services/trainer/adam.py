"""Adam (Kingma and Ba, 2015) for small networks on the CPU.

The results are those of `torch.optim.Adam(fused=True)`, bit for bit. That one imports torch's
compiler, which takes 0.8 s and 70 MB in every trainer and is not used.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


class Adam:
    def __init__(self, parameters: Iterable[nn.Parameter], rate: float) -> None:
        self.parameters = list(parameters)
        self.rate = rate
        self.state: dict[nn.Parameter, dict[str, Tensor]] = {}

    def zero_grad(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None

    def step(self) -> None:
        with torch.no_grad():
            for parameter in self.parameters:
                if parameter not in self.state:
                    self.state[parameter] = {
                        "step": torch.zeros(()),
                        "exp_avg": torch.zeros_like(parameter),
                        "exp_avg_sq": torch.zeros_like(parameter),
                    }
                self.state[parameter]["step"] += 1
            self._update()

    def _gradients(self) -> list[Tensor]:
        gradients = [parameter.grad for parameter in self.parameters]
        assert all(gradient is not None for gradient in gradients)
        return gradients  # type: ignore[return-value]

    def _update(self) -> None:
        moments = [self.state[parameter] for parameter in self.parameters]
        torch._fused_adam_(
            list(self.parameters),
            self._gradients(),
            [each["exp_avg"] for each in moments],
            [each["exp_avg_sq"] for each in moments],
            [],
            [each["step"] for each in moments],
            lr=self.rate,
            beta1=BETA1,
            beta2=BETA2,
            weight_decay=0.0,
            eps=EPSILON,
            amsgrad=False,
            maximize=False,
        )
