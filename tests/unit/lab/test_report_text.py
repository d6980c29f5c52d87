"""What the report says: true claims appear, false ones do not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from services.lab.report.data import read
from services.lab.report.findings import Findings, work_out
from services.lab.report.text import Sentence, sentences
from services.lab.report.trends import overall, summary
from tests.unit.lab.synthetic import SIX, Synthetic, declare, oracle_time

REFERENCE = {
    "source": "a table",
    "total_time": {
        "oracle": 12.97, "greedy": 18.30, "rl_agent": 21.12, "round_robin": 56.87,
        "random": 67.14, "frozen_forest": 122.92,
    },
}  # fmt: skip


def said(folder: Path, synthetic: Synthetic) -> tuple[str, list[Sentence], Findings]:
    study = read(synthetic.write(folder))
    findings = work_out(study)
    found = [*overall(study, findings), *sentences(study, findings)]
    assert summary(study, found)
    assert len(summary(study, found)) <= 6
    return "\n".join(sentence.text for sentence in found), found, findings


def test_the_fastest_and_by_how_much(tmp_path: Path) -> None:
    text, _, findings = said(tmp_path, Synthetic(declare(), noise=0.001))
    # Means of (100 + 3 seed) * 1.4 over seeds 1 to 5: 109 * 1.4 = 152.6.
    assert "greedy has the least total execution time of all but the Oracle: 153 s" in text
    assert "The next, rl_agent, takes 1.14 times" in text  # 1.6 / 1.4
    result = findings.contests[0].results["greedy"]
    assert result.over_oracle is not None
    assert result.over_oracle.mean == pytest.approx(1.4, rel=0.002)
    assert result.figures["total_time"].mean == pytest.approx(152.6, rel=0.002)


def test_the_oracle_is_never_called_the_fastest_scheduler(tmp_path: Path) -> None:
    text, _, _ = said(tmp_path, Synthetic(declare(), noise=0.001))
    assert "oracle has the least" not in text


def test_the_oracle_need_not_spend_the_least_energy(tmp_path: Path) -> None:
    frugal = Synthetic(
        declare(), noise=0.01, energy=lambda variant, name: 20.0 if name == "random" else 40.0
    )
    text, _, _ = said(tmp_path, frugal)
    # 20 J a second of the Oracle's 109 s; 40 for everyone else, and 5.2 / 1.4 of the time.
    assert "random spends the least energy of all: 2,180 J" in text
    assert "0.500 times [0.500, 0.500] what greedy spends, in 3.7" in text


def test_equal_schedulers_are_not_told_apart(tmp_path: Path) -> None:
    text, _, findings = said(
        tmp_path, Synthetic(declare(), {"oracle": 1.0, "greedy": 1.4, "random": 1.4}, noise=0.05)
    )
    assert "But the data do not tell it from" in text
    assert "The next," not in text
    test = findings.contests[0].test("total_time", "greedy", "random")
    assert test is not None
    assert not test.significant


def test_identical_schedulers_are_said_to_be_identical(tmp_path: Path) -> None:
    same = Synthetic(declare(), {"oracle": 1.0, "greedy": 1.4, "random": 1.4}, noise=0.0)
    text, _, _ = said(tmp_path, same)
    assert "took exactly as long in every seed" in text
    assert "The next," not in text


def test_two_noisy_seeds_prove_nothing(tmp_path: Path) -> None:
    noisy = Synthetic(
        declare(seeds=(1, 2)), {"oracle": 1.0, "greedy": 1.3, "random": 1.5}, noise=0.3
    )
    text, _, findings = said(tmp_path, noisy)
    assert "do not tell it from" in text
    assert not any(test.significant for _, test in findings.tests)


def test_pairs_behind_the_leader_are_named_when_they_tie(tmp_path: Path) -> None:
    factors = {"oracle": 1.0, "greedy": 1.2, "random": 3.0, "round_robin": 3.0}
    text, _, _ = said(tmp_path, Synthetic(declare(), factors, noise=0.02))
    assert "In total time the data do not tell apart: " in text
    assert "random" in text.split("do not tell apart: ")[1].split(".")[0]


def test_one_seed_is_said_to_be_one_seed(tmp_path: Path) -> None:
    text, found, findings = said(tmp_path, Synthetic(declare(seeds=(3,))))
    assert found[0].text.startswith("One seed only")
    assert "[" not in text  # no interval anywhere
    assert "p = " not in text
    assert "p < " not in text
    assert "In this one seed rl_agent takes" in text
    total = findings.contests[0].results["oracle"].figures["total_time"]
    assert (total.mean, total.low) == (oracle_time(3), None)


def test_our_order_is_held_against_the_references(tmp_path: Path) -> None:
    text, _, _ = said(tmp_path, Synthetic(declare(reference=REFERENCE), noise=0.002))
    assert "Our means are in the order of the reference: oracle, greedy, rl_agent" in text


def test_a_reversed_order_is_reported_as_such(tmp_path: Path) -> None:
    turned = {**SIX, "rl_agent": 1.2}
    text, _, findings = said(tmp_path, Synthetic(declare(reference=REFERENCE), turned, noise=0.002))
    assert "Our means are not in the order of the reference: rl_agent is faster than greedy" in text
    assert findings.references[0][1].swapped == [("greedy", "rl_agent")]


RATIO = {"ratio": ("frozen_forest", "rl_agent"), "at_least": 6}
LESS = {"ratio": ("rl_agent", "round_robin"), "at_most": 0.5}
BACK = {"recovered": "hybrid_ml", "within_tasks": 100}
ORDER = {"order": ("greedy", "rl_agent", "random")}


@pytest.mark.parametrize(
    ("claim", "changes", "noise", "verdict"),
    [
        (RATIO, {"frozen_forest": 14.0}, 0.01, "This holds: it takes 8."),
        (RATIO, {"frozen_forest": 11.5}, 0.1, "and the interval reaches across"),
        (RATIO, {"frozen_forest": 4.0}, 0.01, "This does not hold: it takes 2."),
        (LESS, {}, 0.01, "This holds: it takes 0.3"),
        (LESS, {"rl_agent": 3.0}, 0.01, "This does not hold: it takes 0."),
        (ORDER, {}, 0.001, "This holds: each is told from the next"),
        (ORDER, {"greedy": 2.0}, 0.001, "This does not hold: rl_agent is faster than greedy"),
        (ORDER, {"greedy": 1.6}, 0.1, "This cannot be said: the data do not tell greedy from"),
        ({"ratio": ("nobody", "greedy"), "at_most": 1}, {}, 0.1, "said: nobody did not run"),
    ],
)
def test_a_claim_is_judged_with_its_interval(
    tmp_path: Path, claim: dict[str, Any], changes: dict[str, float], noise: float, verdict: str
) -> None:
    text, found, findings = said(
        tmp_path, Synthetic(declare(claims=[claim]), {**SIX, **changes}, noise=noise)
    )
    assert verdict in text
    assert next(each for each in found if each.topic == "claim").text in summary(
        read(tmp_path), found
    )
    assert findings.to_json()["claims"][0]["verdict"] in text


@pytest.mark.parametrize(
    ("after", "verdict"),
    [
        (48, "This holds: it took 48.0 [48.0, 48.0] tasks"),
        (148, "This does not hold: it took 148"),
        (None, "This does not hold: in no seed it was"),
    ],
)
def test_a_claimed_recovery_is_judged(tmp_path: Path, after: int | None, verdict: str) -> None:
    synthetic = Synthetic(
        declare(judge_from=1000, claims=[BACK]),
        {**SIX, "hybrid_ml": 2.0},
        recovered={"hybrid_ml": after},
    )
    assert verdict in said(tmp_path, synthetic)[0]


def test_one_seed_decides_no_claim(tmp_path: Path) -> None:
    text, _, _ = said(tmp_path, Synthetic(declare(seeds=(3,), claims=[LESS])))
    assert "This cannot be said: it takes 0.3" in text


def test_a_scheduler_missing_from_the_runs_is_named(tmp_path: Path) -> None:
    fewer = {name: factor for name, factor in SIX.items() if name != "random"}
    text, _, _ = said(tmp_path, Synthetic(declare(reference=REFERENCE), fewer, noise=0.002))
    assert "Not in these runs: random." in text


def test_makespans_are_multiples_of_the_bound(tmp_path: Path) -> None:
    # bound * (1.2 + 0.3 factor): 1.5 for the Oracle, 4.05 for 9.5 times.
    text, _, _ = said(tmp_path, Synthetic(declare(), noise=0.0))
    assert "Makespans lie between 1.50 times" in text
    assert "4.05 times" in text
    assert "beat the Oracle" not in text
    assert "beats the Oracle" not in text


class Makespans(Synthetic):
    """Makespans as given, in multiples of the bound."""

    multiples: Mapping[str, float] = MappingProxyType({})

    def _outcome(self, who: dict[str, Any]) -> dict[str, Any]:
        row = super()._outcome(who)
        multiple = self.multiples.get(who["scheduler"], 2.0)
        return {**row, "makespan": row["bound"] * multiple * (1 + 0.001 * who["seed"])}


def test_whoever_beats_the_oracle_on_makespan_is_explained(tmp_path: Path) -> None:
    class Beaten(Makespans):
        multiples = MappingProxyType({"oracle": 2.0, "greedy": 1.5, "rl_agent": 2.5})

    text, _, _ = said(tmp_path, Beaten(declare(), noise=0.01))
    assert "On makespan greedy (0.750 times [0.750, 0.750] its makespan) beats the Oracle" in text
    assert "knows nothing of queues" in text


def test_arrivals_that_decide_the_makespan_are_seen(tmp_path: Path) -> None:
    class Idle(Makespans):
        multiples = MappingProxyType(dict.fromkeys(SIX, 1.16))

    text, _, _ = said(tmp_path, Idle(declare(), noise=0.01))
    assert "here the arrivals set the makespan, not the schedulers" in text
    assert "Makespans are about 1.16 times" in text
    assert "Makespans lie between" not in text
    assert "beats the Oracle" not in text


def test_overload_failures_and_recovery(tmp_path: Path) -> None:
    synthetic = Synthetic(
        declare(judge_from=1500),
        {**SIX, "hybrid_ml": 1.2},
        wait=lambda variant, name: 500.0 if name == "random" else 0.01,
        failed={"greedy": 25},
        recovered={"hybrid_ml": 48, "rl_agent": None},
    )
    text, _, _ = said(tmp_path, synthetic)
    overload = next(line for line in text.split("\n") if line.startswith("Overload"))
    assert "random (" in overload
    assert "greedy" not in overload
    assert "greedy 125 of 2,500 (5.00 %)" in text  # 25 of 500, five seeds
    assert "hybrid_ml after 48 tasks" in text
    never = text.split("In no seed within 10 %: ")[1]
    assert "rl_agent" in never.split(".")[0]
    assert "hybrid_ml" not in never.split(".")[0]


def test_nothing_is_said_of_what_did_not_happen(tmp_path: Path) -> None:
    # Recovery is measured only where its figure is asked for: no word of it here.
    experiment = declare(judge_from=1500, figures=("total_time",))
    text, _, _ = said(tmp_path, Synthetic(experiment, wait=lambda variant, name: 0.001))
    for word in ("Overload", "failed", "within 10 %", "Within it", "reference"):
        assert word not in text


def test_without_an_oracle_it_is_not_mentioned(tmp_path: Path) -> None:
    without = {name: factor for name, factor in SIX.items() if name != "oracle"}
    text, _, findings = said(tmp_path, Synthetic(declare(judge_from=1000), without, noise=0.001))
    assert "Oracle" not in text
    assert findings.contests[0].results["greedy"].over_oracle is None


def sweep(**changes: Any) -> dict[str, Any]:
    variants = {
        f"w{i}": {
            "label": f"weight {i}",
            "value": i,
            "spec": {"learning": {"energy_weight": i / 4}},
        }
        for i in range(3)
    }
    return {"variants": variants, "axis": "weight", **changes}


def test_a_sweep_says_who_changes_and_who_does_not(tmp_path: Path) -> None:
    def factors(variant: str) -> dict[str, float]:
        return {"oracle": 1.0, "greedy": 1.4, "rl_agent": 1.5 * (1 + int(variant[1:]))}

    text, found, _ = said(
        tmp_path,
        Synthetic(declare(**sweep()), factors, noise=0.01, energy=lambda variant, name: 40.0),
    )
    lines = [sentence.text for sentence in found if sentence.topic == "sweep"]
    # 4.5 over 1.5, the same noise at both ends: exactly 3 times, and the cost with it.
    assert (
        "From weight = 0 to 2, total time becomes: rl_agent 3.00 times [3.00, 3.00] what it was. "
        "The data do not show a change for oracle and greedy."
    ) in lines
    assert (
        "From weight = 0 to 2, the data do not show a change of energy for any scheduler." in lines
    )
    # 0.6 / factor: from 0.4 to 0.13; greedy keeps its share.
    shares = next(line for line in lines if "share on GPUs" in line)
    assert "rl_agent 0.40 to 0.13, by -0.2" in shares
    assert "[-0.2" in shares
    assert "greedy" not in shares
    assert "greedy has the least" in text


def test_overload_is_said_to_begin_somewhere(tmp_path: Path) -> None:
    def wait(variant: str, name: str) -> float:
        return 400.0 if name == "greedy" and variant == "w2" else 0.001

    text, _, _ = said(tmp_path, Synthetic(declare(**sweep()), wait=wait))
    assert "as they run, by weight: from 2 on greedy." in text


def test_declared_tests_are_corrected_over_all_of_them(tmp_path: Path) -> None:
    chosen = declare(compare=("rl_agent", "greedy"))
    _, _, findings = said(tmp_path, Synthetic(chosen, noise=0.02))
    # Two against the five others each; their own pair is tested once.
    assert len(findings.tests) == 9
    p = sorted(test.p or 0.0 for _, test in findings.tests)
    adjusted = sorted(test.p_adjusted or 0.0 for _, test in findings.tests)
    assert adjusted[0] == pytest.approx(min(1.0, 9 * p[0]))
    _, _, usual = said(tmp_path, Synthetic(declare(), noise=0.02))
    assert {test.second for _, test in usual.tests} == {"greedy"}
    assert len(usual.tests) == 5
