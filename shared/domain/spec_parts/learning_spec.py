"""What a RunSpec may say of learning: what learners minimise, when they learn, and the constants of
each of them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from shared.domain.spec_model import NonNegative, Positive, Share, SpecModel, problem_at


class Objective(SpecModel):
    """The weighted sum that `predictive`, `attention_agent` and `bandit` minimise. Energy and cost
    are counted in seconds of the strongest devices; see shared/domain/learning/objective.py."""

    turnaround: Positive = Field(default=1.0, description="above 0, or tasks might wait for ever")
    energy: NonNegative = 0.0
    cost: NonNegative = 0.0


class Forest(SpecModel):
    """The learner behind `hybrid_ml`: a random forest that imitates the Oracle."""

    trees: int = Field(default=100, ge=1, le=1000)
    retrain_every: int = Field(default=50, ge=1, description="new Oracle results between fits")
    window: int = Field(default=1000, ge=50, le=100_000, description="newest results fitted on")
    judge_on: int = Field(
        default=25, ge=5, le=1000, description="newest results kept back to judge a fresh forest"
    )
    tolerance: NonNegative = Field(
        default=0.01, description="how much worse than the model in service it may be and ship"
    )
    drift_delta: float = Field(
        default=0.002, gt=0, lt=1, description="confidence of the drift detector (ADWIN)"
    )


class Agent(SpecModel):
    """The learner behind `rl_agent`: a dueling double DQN. Described in
    services/trainer/learners/rl_agent.py."""

    observes: Literal["task", "cluster"] = Field(
        default="task",
        description="task: its features, execution time counts; cluster: the queues, too, and "
        "turnaround counts",
    )
    hidden: int = Field(default=256, ge=8, le=1024, description="units of each hidden layer")
    replay: int = Field(default=50_000, ge=1000, le=1_000_000)
    batch: int = Field(default=64, ge=8, le=4096)
    newest: int = Field(
        default=500,
        ge=1,
        description="half of a batch is from that many newest; after a surprise, from those since",
    )
    target_every: int = Field(default=50, ge=1, description="steps between target copies")
    learning_rate: Positive = 0.001
    discount: float | None = Field(
        default=None,
        ge=0,
        lt=1,
        description="weight of what comes next; none: 0 for a task, since where it runs does not "
        "change which one comes next, and 0.9 for the cluster, whose queues it does change",
    )
    clip: Positive = Field(default=1.0, description="largest norm of a gradient")
    pretrain_steps: int = Field(default=1000, ge=0, le=100_000)
    steps_per_result: NonNegative = Field(default=1.0, description="learning steps per result")
    ship_every: int = Field(default=50, ge=1, description="learning steps between shipments")
    epsilon_start: Share = Field(default=0.05, description="exploration at the first task")
    epsilon_cold: Share = Field(default=1.0, description="the same, without pre-training")
    epsilon_end: Share = 0.01
    epsilon_tasks: Positive = Field(
        default=1500, description="tasks after which it has fallen to 1/e"
    )
    surprise: Positive = Field(
        default=4.0, description="error, over the usual one, that means the workload has changed"
    )
    surprise_steps: NonNegative = Field(
        default=16.0, description="additional steps per result after such a change"
    )
    surprise_rate: Positive = Field(
        default=3.0, description="factor of the learning rate after such a change"
    )
    surprise_epsilon: Share = Field(default=0.5, description="exploration after such a change")
    calm_down: Positive = Field(default=10, description="results in which these effects halve")
    indifference: NonNegative = Field(
        default=0.2, description="GPUs whose values differ by a smaller share take turns"
    )

    @property
    def weight_of_next(self) -> float:
        """The discount that holds."""
        if self.discount is not None:
            return self.discount
        return 0.9 if self.observes == "cluster" else 0.0

    @model_validator(mode="after")
    def _the_next_state_counts_for_a_cluster(self) -> Agent:
        if self.observes == "cluster" and self.discount == 0:
            message = "must be above 0 with observes: cluster: a placement changes the next state"
            raise problem_at(message, "discount")
        return self


class Predictive(SpecModel):
    """The learner behind `predictive`: trees that predict seconds, and prices of device time."""

    window: int = Field(default=4000, ge=100, le=100_000, description="newest results fitted on")
    retrain_every: int = Field(default=250, ge=1, description="new results between fits")
    examples: int = Field(
        default=500,
        ge=0,
        le=10_000,
        description="a device type with fewer results is fitted on pre-training tasks, too",
    )
    trees: int = Field(default=24, ge=1, le=1000, description="of each device type")
    leaves: int = Field(default=8, ge=2, le=256, description="of each tree, at most")
    leaf_results: int = Field(default=10, ge=1, description="results in a leaf, at least")
    learning_rate: float = Field(default=0.3, gt=0, le=1)
    replay: int = Field(
        default=4000, ge=100, le=100_000, description="newest tasks that prices are tried on"
    )
    candidates: int = Field(default=48, ge=16, le=1000, description="prices tried at once")
    rounds: int = Field(default=2, ge=0, le=100, description="of a search after new results")
    pretrain_rounds: int = Field(default=8, ge=0, le=100, description="of the first search")
    speed: float = Field(
        default=0.5, gt=0, le=1, description="how far prices move to the best ones in a round"
    )
    least_step: Share = Field(
        default=0.4, description="how far a search looks at least, over how far the first one does"
    )
    bulk_share: Share = Field(
        default=0.25, description="devices of each type that long tasks gather on under load"
    )
    explore: Share = Field(default=0.002, description="tasks that try a device type at random")
    explore_limit: float = Field(
        default=3.0, ge=1, description="time there over the fastest type's, at most"
    )
    optimism: NonNegative = Field(
        default=1.0, description="deviations that a kind new on a device type may be faster there"
    )


class Bandit(SpecModel):
    """The learner behind `bandit`: linear Thompson sampling."""

    window: int = Field(default=2000, ge=100, le=100_000, description="newest results learned from")
    retrain_every: int = Field(default=250, ge=1, description="new results between two posteriors")
    blame: Share = Field(
        default=1.0,
        description="how much of the delay of tasks behind a task is counted as its own cost",
    )
    doubt: NonNegative = Field(
        default=0.1, description="factor of the posterior's deviations when it is sampled"
    )
    prior: Positive = Field(
        default=20.0, description="results that the prior, earliest finish, counts as"
    )


class Attention(SpecModel):
    """The learner behind `attention_agent`: policy iteration with roll-outs. Described in
    services/trainer/learners/attention_agent.py."""

    width: int = Field(default=16, ge=4, le=128, description="numbers of a token")
    hidden: int = Field(default=32, ge=4, le=512, description="units of the last hidden layer")
    accelerator_price: NonNegative = Field(
        default=1.0, description="of the base rule, on a second of an accelerator"
    )
    cpu_price: NonNegative = Field(default=2.0, description="the same, on a second of a CPU")
    guard: NonNegative = Field(
        default=4.0,
        description="a choice that finishes later than 1 + this times the earliest is not made",
    )
    discount: float = Field(default=0.99, ge=0, le=1, description="per task behind a placement")
    horizon: int = Field(default=100, ge=1, le=1000, description="tasks of a roll-out")
    most_devices: int = Field(
        default=10, ge=1, le=1000, description="of a roll-out; a larger cluster is scaled down"
    )
    most_tried: int = Field(
        default=6, ge=2, le=1000, description="devices whose cost is computed in each state"
    )
    streams: int = Field(
        default=64, ge=1, le=4096, description="streams that states are drawn from"
    )
    warm_up: int = Field(default=100, ge=0, le=10_000, description="tasks before the first state")
    rate_spread: Share = Field(default=0.1, description="deviation of the streams' arrival rates")
    explore: Share = Field(default=0.05, description="share of random placements in streams")
    base_rounds: int = Field(
        default=2, ge=0, le=100, description="rounds of pre-training with the base rule's roll-outs"
    )
    base_states: int = Field(default=16_000, ge=64, le=1_000_000, description="states of each")
    own_rounds: int = Field(
        default=2, ge=0, le=100, description="rounds of pre-training with the network's roll-outs"
    )
    own_states: int = Field(default=1000, ge=64, le=1_000_000, description="states of each")
    steps: int = Field(default=300, ge=1, le=100_000, description="gradient steps of each round")
    batch: int = Field(default=256, ge=8, le=65_536)
    learning_rate: Positive = 0.005
    temperature: Positive = Field(
        default=1.0, description="of the softmax over scores in the loss, in mean task times"
    )
    clip: Positive = Field(default=1.0, description="largest norm of a gradient")
    window: int = Field(default=2000, ge=100, le=100_000, description="newest results used")
    learn_every: int = Field(default=500, ge=1, description="results between rounds in the run")
    learn_states: int = Field(
        default=256, ge=64, le=1_000_000, description="states of such a round"
    )
    learn_steps: int = Field(default=60, ge=1, le=100_000, description="gradient steps of one")
    learn_rate: Positive = Field(default=0.001, description="learning rate of one")
    judge_streams: int = Field(
        default=64, ge=1, le=4096, description="streams on which two networks are compared"
    )
    judge_tasks: int = Field(default=300, ge=1, le=10_000, description="tasks of each such stream")


class Learning(SpecModel):
    """How the learning schedulers learn."""

    pretrain_tasks: int = Field(
        default=1000, ge=0, le=100_000, description="generated tasks learned from before the first"
    )
    sync: Literal["auto", "free", "lockstep"] = Field(
        default="auto",
        description="free: a model decides as soon as it arrives; lockstep: which one decides a "
        "task follows from the task; auto: lockstep at pace max, if tasks are counted or "
        "submitted, and simulated",
    )
    lockstep_tasks: int = Field(
        default=500, ge=1, le=100_000, description="tasks that each version decides in lockstep"
    )
    energy_weight: Share = Field(default=0.5, description="0: time alone counts, 1: energy alone")
    forest: Forest = Forest()
    agent: Agent = Agent()
    predictive: Predictive = Predictive()
    bandit: Bandit = Bandit()
    attention: Attention = Attention()
