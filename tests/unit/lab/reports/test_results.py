"""The numbers and verdicts of a report: known outcomes in, the right conclusions out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from services.lab.reports.results import Results, compute_results
from services.lab.reports.study import read
from services.lab.reports.summary import summarize
from tests.unit.lab.reports.synthetic import REFERENCE, SIX, Synthetic, declare, oracle_time


def results_of(folder: Path, synthetic: Synthetic) -> tuple[Results, str]:
    study = read(synthetic.write(folder))
    results = compute_results(study)
    return results, "\n".join(summarize(study, results))


def test_the_fastest_and_by_how_much(tmp_path: Path) -> None:
    results, summary = results_of(tmp_path, Synthetic(declare(measure="time"), noise=0.001))
    # Means of (100 + 3 seed) * 1.4 over seeds 1 to 5: 109 * 1.4 = 152.6; next 1.6 / 1.4.
    greedy = results.variants[0].schedulers["greedy"]
    assert greedy.mean("total_time") == pytest.approx(152.6, rel=0.002)
    assert greedy.mean("over_oracle") == pytest.approx(1.4, rel=0.002)
    assert greedy.mean("regret") == pytest.approx(0.4 * 109, rel=0.01)
    assert "greedy, 153 s" in summary
    assert "Next: rl_agent, 1.14" in summary


def test_makespans_are_multiples_of_the_arrival_bound(tmp_path: Path) -> None:
    # bound * (1.2 + 0.3 factor)
    results, _ = results_of(tmp_path, Synthetic(declare(), noise=0.0))
    slowest = results.variants[0].schedulers["frozen_forest"]
    assert slowest.mean("over_bound") == pytest.approx(1.2 + 0.3 * 9.5)


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_equal_schedulers_are_not_distinguished(tmp_path: Path, noise: float) -> None:
    equal = Synthetic(declare(), {"oracle": 1.0, "greedy": 1.4, "random": 1.4}, noise=noise)
    results, summary = results_of(tmp_path, equal)
    test = results.variants[0].test("total_time", "greedy", "random")
    assert test is not None
    assert not test.significant
    assert test.identical == (noise == 0)
    assert "not distinguished from" in summary


def test_two_noisy_seeds_prove_nothing(tmp_path: Path) -> None:
    factors = {"oracle": 1.0, "greedy": 1.3, "random": 1.5}
    results, _ = results_of(tmp_path, Synthetic(declare(seeds=(1, 2)), factors, noise=0.3))
    assert not any(test.significant for test in results.variants[0].pairs["total_time"])


def test_one_seed_gives_no_interval_and_no_test(tmp_path: Path) -> None:
    results, summary = results_of(tmp_path, Synthetic(declare(seeds=(3,))))
    assert summary.startswith("One seed only")
    assert "[" not in summary
    assert "p = " not in summary
    assert "p < " not in summary
    total = results.variants[0].schedulers["oracle"].figures["total_time"]
    assert (total.mean, total.low) == (oracle_time(3), None)


def test_without_an_oracle_nothing_is_measured_against_it(tmp_path: Path) -> None:
    without = {name: factor for name, factor in SIX.items() if name != "oracle"}
    results, summary = results_of(tmp_path, Synthetic(declare(judge_from=1000), without))
    assert results.variants[0].schedulers["greedy"]["over_oracle"] is None
    assert "times the Oracle's" not in summary


def test_failed_tasks_are_counted_in_the_summary(tmp_path: Path) -> None:
    _, summary = results_of(tmp_path, Synthetic(declare(judge_from=1500), failed={"greedy": 25}))
    assert "greedy 125 of 2,500 (5.00 %)" in summary  # 25 of 500, five seeds
    assert "charged its time on the slowest device type" in summary


def test_failures_stand_beside_who_is_best_and_in_the_verdicts(tmp_path: Path) -> None:
    claims = [{"ratio": ("greedy", "rl_agent"), "at_most": 1}]
    failing = Synthetic(declare(claims=claims, measure="time"), noise=0.001, failed={"greedy": 25})
    results, summary = results_of(tmp_path, failing)
    assert "Least total time: greedy (125 failed), 153 s" in summary
    assert "Least makespan: greedy (125 failed)" in summary
    assert results.variants[0].claims[0].measured.endswith("times; 125 tasks of greedy failed")


def test_the_ranks_of_the_reference_stand_beside_ours(tmp_path: Path) -> None:
    swapped = Synthetic(declare(reference=REFERENCE), {**SIX, "rl_agent": 1.2}, noise=0.002)
    results, _ = results_of(tmp_path / "swapped", swapped)
    row = results.variants[0].reference["rl_agent"]
    assert (row.our_rank, row.their_rank) == (2, 3)
    fewer = {name: factor for name, factor in SIX.items() if name != "random"}
    results, _ = results_of(tmp_path / "fewer", Synthetic(declare(reference=REFERENCE), fewer))
    assert set(results.variants[0].reference) == set(fewer)


RATIO = {"ratio": ("frozen_forest", "rl_agent"), "at_least": 6}
LESS = {"ratio": ("rl_agent", "round_robin"), "at_most": 0.5}
RECOVERED = {"recovered": "hybrid_ml", "within_tasks": 100}
ORDER = {"order": ("greedy", "rl_agent", "random")}


@pytest.mark.parametrize(
    ("claim", "changes", "noise", "verdict", "measured"),
    [
        (RATIO, {"frozen_forest": 14.0}, 0.01, "holds", "8."),
        (RATIO, {"frozen_forest": 11.5}, 0.1, "undecided", ""),
        (RATIO, {"frozen_forest": 4.0}, 0.01, "does not hold", "2."),
        (LESS, {}, 0.01, "holds", "0.3"),
        (LESS, {"rl_agent": 3.0}, 0.01, "does not hold", "0.6"),
        (ORDER, {}, 0.001, "holds", ""),
        (ORDER, {"greedy": 2.0}, 0.001, "does not hold", "rl_agent has less than greedy"),
        (ORDER, {"greedy": 1.6}, 0.1, "undecided", "not distinguished: greedy and rl_agent"),
        ({"ratio": ("nobody", "greedy"), "at_most": 1}, {}, 0.1, "undecided", "nobody did not run"),
    ],
)
def test_a_claim_is_judged_with_its_interval(
    tmp_path: Path,
    claim: dict[str, Any],
    changes: dict[str, float],
    noise: float,
    verdict: str,
    measured: str,
) -> None:
    synthetic = Synthetic(declare(claims=[claim]), {**SIX, **changes}, noise=noise)
    results, summary = results_of(tmp_path, synthetic)
    judged = results.variants[0].claims[0]
    assert judged.verdict == verdict
    assert judged.measured.startswith(measured)
    assert f"{verdict}: {judged.claim} ({judged.measured})" in summary


@pytest.mark.parametrize(
    ("after", "verdict"), [(48, "holds"), (148, "does not hold"), (None, "does not hold")]
)
def test_a_claimed_recovery_is_judged(tmp_path: Path, after: int | None, verdict: str) -> None:
    synthetic = Synthetic(
        declare(judge_from=1000, claims=[RECOVERED]),
        {**SIX, "hybrid_ml": 2.0},
        recovered={"hybrid_ml": after},
    )
    results, _ = results_of(tmp_path, synthetic)
    assert results.variants[0].claims[0].verdict == verdict


def test_one_seed_decides_no_claim(tmp_path: Path) -> None:
    results, _ = results_of(tmp_path, Synthetic(declare(seeds=(3,), claims=[LESS])))
    assert results.variants[0].claims[0].verdict == "undecided"


def test_a_sweep_is_tested_from_end_to_end(tmp_path: Path) -> None:
    def factors(variant: str) -> dict[str, float]:
        return {"oracle": 1.0, "greedy": 1.4, "rl_agent": 1.5 * (1 + int(variant[1:]))}

    variants = {f"w{i}": {"label": f"weight {i}", "value": i} for i in range(3)}
    swept = Synthetic(
        declare(variants=variants, axis="weight", measure="time"),
        factors,
        energy=lambda variant, name: 40.0,
    )
    results, summary = results_of(tmp_path, swept)
    # 4.5 over 1.5, the same noise at both ends: exactly 3 times, and the cost with it.
    for figure in ("total_time", "total_cost"):
        assert results.sweep[figure]["rl_agent"].ratio.mean == pytest.approx(3)
        assert results.sweep[figure]["rl_agent"].significant
        assert not results.sweep[figure]["greedy"].significant
    assert not results.sweep["total_energy"]["rl_agent"].significant
    assert "Least total time: greedy in every variant." in summary


def test_tests_are_corrected_over_all_pairs(tmp_path: Path) -> None:
    results, _ = results_of(tmp_path, Synthetic(declare(), noise=0.02))
    tests = results.variants[0].pairs["total_time"]
    assert len(tests) == 15  # of six schedulers
    p = sorted(test.p or 0.0 for test in tests)
    adjusted = sorted(test.p_adjusted or 0.0 for test in tests)
    assert adjusted[0] == pytest.approx(min(1.0, 15 * p[0]))


def test_the_pairs_that_an_experiment_asks_for(tmp_path: Path) -> None:
    chosen = Synthetic(declare(compare=("rl_agent", "greedy")))
    tests = results_of(tmp_path / "a", chosen)[0].variants[0].asked
    compared = [(test.first, test.second) for test in tests]
    assert len(compared) == 5 + 4  # of six schedulers
    least = min(tests, key=lambda test: test.p or 0.0)
    assert least.p_adjusted == pytest.approx(min(1.0, 9 * (least.p or 0.0)))
    assert ("rl_agent", "greedy") in compared
    assert ("greedy", "rl_agent") not in compared  # once is enough
    assert ("greedy", "random") in compared
    default, _ = results_of(tmp_path / "b", Synthetic(declare()))
    assert {test.second for test in default.variants[0].asked} == {"greedy"}


def test_an_experiment_is_ranked_by_its_own_measure(tmp_path: Path) -> None:
    def wait(variant: str, name: str) -> float:
        return 0.1 if name == "random" else 2.0

    # random executes 5.2 times as long as the Oracle, but hardly waits.
    slow_starts = Synthetic(declare(), noise=0.001, wait=wait)
    results, summary = results_of(tmp_path / "turnaround", slow_starts)
    assert next(iter(results.variants[0].schedulers)) == "random"
    assert summary.startswith("Least mean turnaround: random, ")
    assert "Least total time: greedy." in summary
    by_time = Synthetic(declare(measure="time"), noise=0.001, wait=wait)
    results, summary = results_of(tmp_path / "time", by_time)
    assert next(iter(results.variants[0].schedulers)) == "greedy"
    assert summary.startswith("Least total time: greedy, ")


def test_a_claim_about_turnaround_is_judged_by_it(tmp_path: Path) -> None:
    claim = {"ratio": ("random", "greedy"), "at_most": 0.5}
    claims = [claim, {**claim, "measure": "turnaround"}]
    waiting = Synthetic(
        declare(claims=claims), wait=lambda variant, name: 0.1 if name == "random" else 2.0
    )
    judged = results_of(tmp_path, waiting)[0].variants[0].claims
    assert [each.verdict for each in judged] == ["does not hold", "holds"]
    assert "total time" in judged[0].claim
    assert "mean turnaround" in judged[1].claim


def test_references_are_never_the_best(tmp_path: Path) -> None:
    factors = {"oracle": 1.0, "clairvoyant": 1.1, "greedy": 1.4, "random": 5.2}
    results, summary = results_of(tmp_path, Synthetic(declare(), factors, noise=0.001))
    names = list(results.variants[0].schedulers)
    assert names[:2] == ["greedy", "random"]
    assert results.variants[0].ranked("avg_turnaround") == names[:2]
    assert "Least mean turnaround: greedy" in summary
    # (0.5 + 152.6 / 2000) over (0.5 + 119.9 / 2000), with 5 % of noise in the waits
    over = results.variants[0].schedulers["greedy"].mean("over_clairvoyant")
    assert over == pytest.approx(0.5763 / 0.55995, rel=0.1)


def test_a_scheduler_breaks_down_where_its_turnaround_or_its_backlog_grows(tmp_path: Path) -> None:
    loads = {"a": 0.1, "b": 0.5, "c": 0.9}
    variants = {name: {"value": load} for name, load in loads.items()}

    def factors(variant: str) -> dict[str, float]:
        return {"steady": 1.0, "tired": 1.0, "slow": 1.0}

    class Makespans(Synthetic):
        def _outcome(self, who: dict[str, Any]) -> dict[str, Any]:
            row = super()._outcome(who)
            behind = who["scheduler"] == "tired" and loads[who["variant"]] > 0.8
            return {**row, "makespan": row["arrival_bound"] * (1.3 if behind else 1.02)}

    def wait(variant: str, name: str) -> float:
        return 20.0 if name == "slow" and loads[variant] > 0.4 else 0.5

    declared = declare(variants=variants, axis="load", figures=("sweep", "breakdown"))
    results, summary = results_of(tmp_path, Makespans(declared, factors, wait=wait))
    assert results.breakdown == {"steady": None, "tired": 0.9, "slow": 0.5}
    assert "Breaks down by load: slow at 0.5; tired at 0.9." in summary
    assert "Does not up to 0.9: steady." in summary


def test_two_seeds_are_called_too_few(tmp_path: Path) -> None:
    _, summary = results_of(tmp_path, Synthetic(declare(seeds=(1, 2)), noise=0.3))
    assert summary.startswith("Too few seeds (2)")


def test_a_claim_about_one_variant_is_judged_there_only(tmp_path: Path) -> None:
    claims = [{**LESS, "variants": ["busy"]}]
    declared = declare(variants={"idle": {}, "busy": {}}, claims=claims)
    results, _ = results_of(tmp_path, Synthetic(declared))
    assert [len(variant.claims) for variant in results.variants] == [0, 1]
