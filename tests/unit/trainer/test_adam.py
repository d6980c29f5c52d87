"""Our Adam beside torch's."""

from __future__ import annotations

import subprocess
import sys

import torch
from torch import nn

from services.trainer.adam import Adam

STEPS = 200

PRETRAIN = """
import sys
from services.trainer.learners.attention_agent import AttentionLearner
from services.trainer.learners.rl_agent import AgentLearner
from services.trainer.pretraining import pretraining_tasks
from shared.domain.spec import RunSpec

spec = RunSpec.parse({"learning": {"pretrain_tasks": 100}})
for learner in (AgentLearner, AttentionLearner):
    assert learner(spec).pretrain(pretraining_tasks(spec)) is not None
sys.exit("torch._dynamo" in sys.modules)
"""


def network() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 3))


def rate(step: int) -> float:
    return 1e-3 * (1 - step / STEPS)


def test_the_weights_are_those_of_torch_to_the_bit() -> None:
    ours, theirs = network(), network()
    adam = Adam(ours.parameters(), rate(0))
    reference = torch.optim.Adam(theirs.parameters(), lr=rate(0), fused=True)
    for step in range(STEPS):
        adam.rate = reference.param_groups[0]["lr"] = rate(step)
        rows = torch.randn(8, 5)
        for each, optimiser in ((ours, adam), (theirs, reference)):
            optimiser.zero_grad()
            each(rows).square().sum().backward()
            optimiser.step()
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(mine, other)
        for name, moment in reference.state[other].items():
            assert torch.equal(adam.state[mine][name], moment)


def test_pretraining_does_not_import_the_compiler_of_torch() -> None:
    subprocess.run([sys.executable, "-c", PRETRAIN], check=True, timeout=300)
