"""How a policy is found, and what is said when it is not."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from services.scheduler.policies.greedy import Greedy
from services.scheduler.policies.oracle import Oracle
from services.scheduler.policy import PolicyError, built_in, load

OWN = """
from services.scheduler.policy import Policy


class Own(Policy):
    name = "own"

    def decide(self, tasks, spec):
        raise NotImplementedError
"""


def written(folder: Path, text: str, name: str = "mine.py") -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def reason(reference: str) -> str:
    with pytest.raises(PolicyError) as caught:
        load(reference)
    return str(caught.value)


def test_the_built_in_policies_are_the_files_of_the_folder() -> None:
    rules = ["cpu_only", "gpu_only", "greedy", "oracle", "random", "round_robin"]
    assert built_in() == sorted([*rules, "hybrid_ml", "rl_agent"])


@pytest.mark.parametrize("name", built_in())
def test_a_built_in_policy_is_found_by_its_name(name: str) -> None:
    assert load(name).name == name


def test_a_class_of_a_module_is_found() -> None:
    assert isinstance(load("services.scheduler.policies.greedy:Greedy"), Greedy)


def test_the_only_policy_of_a_module_is_found() -> None:
    assert isinstance(load("services.scheduler.policies.oracle"), Oracle)


def test_the_policy_of_a_file_is_found(tmp_path: Path) -> None:
    assert load(written(tmp_path, OWN)).name == "own"


def test_one_of_several_policies_of_a_file_is_found_by_its_class(tmp_path: Path) -> None:
    other = OWN.replace("Own", "Other").replace('"own"', '"other"')
    file = written(tmp_path, OWN + other)
    assert load(f"{file}:Other").name == "other"
    assert load(f"{file}:Own").name == "own"


def test_a_policy_that_builds_on_another_is_found(tmp_path: Path) -> None:
    text = (
        "from services.scheduler.policies.greedy import Greedy\n\n"
        "class Mine(Greedy):\n    name = 'mine'\n"
    )
    assert load(written(tmp_path, text)).name == "mine"


def test_a_file_may_be_called_like_a_module_of_python(tmp_path: Path) -> None:
    before = sys.modules["json"]
    assert load(written(tmp_path, OWN, "json.py")).name == "own"
    assert sys.modules["json"] is before is json


def test_no_policy_says_what_to_set() -> None:
    assert reason("").startswith(
        "no policy given: set HYBRID_POLICY to one of cpu_only, gpu_only, greedy, "
    )


def test_an_unknown_name_says_which_ones_there_are() -> None:
    assert reason("gready") == f"no policy 'gready'; built in: {', '.join(built_in())}"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "missing.py"
    assert reason(str(missing)) == f"no such file: {missing}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import nothing_like_this", "ModuleNotFoundError"),
        ("1 / 0", "ZeroDivisionError"),
        ("def broken(:", "SyntaxError"),
    ],
)
def test_a_file_that_cannot_be_loaded_says_why(tmp_path: Path, text: str, said: str) -> None:
    file = written(tmp_path, text)
    assert reason(file).startswith(f"{file} cannot be loaded: {said}")


def test_a_module_that_cannot_be_imported_says_why() -> None:
    said = reason("no.such.module:Class")
    assert said.startswith("cannot import no.such.module: ModuleNotFoundError")


def test_a_module_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, "1 / 0", "failing_policy_module.py")
    monkeypatch.syspath_prepend(tmp_path)
    said = reason("failing_policy_module:Own")
    assert said.startswith("cannot import failing_policy_module: ZeroDivisionError")


def test_a_file_without_a_policy_says_so(tmp_path: Path) -> None:
    file = written(tmp_path, "from services.scheduler.policies.greedy import Greedy\n")
    assert reason(file) == f"{file}: one Policy class expected, found: none"


def test_an_abstract_policy_is_none(tmp_path: Path) -> None:
    text = "from services.scheduler.policy import Policy\n\nclass Half(Policy):\n    name = 'half'"
    file = written(tmp_path, text)
    assert reason(file) == f"{file}: one Policy class expected, found: none"


def test_a_file_with_two_policies_names_both(tmp_path: Path) -> None:
    file = written(tmp_path, OWN + OWN.replace("Own", "Other"))
    assert reason(file) == f"{file}: one Policy class expected, found: Own, Other"


def test_a_class_that_is_not_there_says_so() -> None:
    reference = "services.scheduler.policies.greedy:Gready"
    assert reason(reference) == f"{reference}: one Policy class expected, found: none"


@pytest.mark.parametrize("name", ['""', '"My Own"', '"9th"', '"a.b"'])
def test_a_name_that_no_subject_can_carry_says_what_to_do(tmp_path: Path, name: str) -> None:
    file = written(tmp_path, OWN.replace('"own"', name))
    said = reason(file)
    assert said.startswith(f"{file}: ")
    assert "is no scheduler name" in said
    assert said.endswith("; set the class attribute `name`")


def test_a_policy_without_a_name_says_what_to_do(tmp_path: Path) -> None:
    said = reason(written(tmp_path, OWN.replace('    name = "own"\n', "")))
    assert said.endswith("; set the class attribute `name`")


def test_a_policy_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    text = OWN + "\n    def __init__(self, size):\n        pass\n"
    assert "Own() failed: TypeError" in reason(written(tmp_path, text))
