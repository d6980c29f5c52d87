"""How a policy is loaded, and the error if it cannot be."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from services.scheduler.policies.greedy import Greedy
from services.scheduler.policies.oracle import Oracle
from services.scheduler.policy import PolicyError, load
from shared.domain.schedulers import BUILT_IN

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


def test_every_policy_in_the_folder_is_built_in() -> None:
    folder = Path(sys.modules[Greedy.__module__].__file__ or "").parent
    assert {file.stem for file in folder.glob("[!_]*.py")} == set(BUILT_IN)


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_policy_is_loaded_by_its_name(name: str) -> None:
    assert load(name).name == name


def test_a_policy_of_a_module_is_loaded_by_its_class_or_if_it_is_the_only_one() -> None:
    assert isinstance(load("services.scheduler.policies.greedy:Greedy"), Greedy)
    assert isinstance(load("services.scheduler.policies.oracle"), Oracle)


def test_the_policy_of_a_file_is_loaded(tmp_path: Path) -> None:
    assert load(written(tmp_path, OWN)).name == "own"


def test_one_of_several_policies_of_a_file_is_loaded_by_its_class(tmp_path: Path) -> None:
    other = OWN.replace("Own", "Other").replace('"own"', '"other"')
    file = written(tmp_path, OWN + other)
    assert load(f"{file}:Other").name == "other"
    assert load(f"{file}:Own").name == "own"


def test_a_subclass_of_another_policy_is_loaded(tmp_path: Path) -> None:
    text = (
        "from services.scheduler.policies.greedy import Greedy\n\n"
        "class Mine(Greedy):\n    name = 'mine'\n"
    )
    assert load(written(tmp_path, text)).name == "mine"


def test_a_file_with_the_name_of_a_standard_module_does_not_replace_it(tmp_path: Path) -> None:
    before = sys.modules["json"]
    assert load(written(tmp_path, OWN, "json.py")).name == "own"
    assert sys.modules["json"] is before is json


def test_without_a_policy_the_error_says_what_to_set() -> None:
    assert reason("").startswith(
        "no policy given: set HYBRID_POLICY to one of attention_agent, bandit, "
    )


def test_an_unknown_name_lists_the_built_in_ones() -> None:
    assert reason("gready") == f"no policy 'gready'; built in: {', '.join(sorted(BUILT_IN))}"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "missing.py"
    assert reason(str(missing)) == f"no such file: {missing}"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("import nothing_like_this", "ModuleNotFoundError"),
        ("1 / 0", "ZeroDivisionError"),
        ("def broken(:", "SyntaxError"),
    ],
)
def test_a_file_that_cannot_be_loaded_says_why(tmp_path: Path, text: str, error: str) -> None:
    file = written(tmp_path, text)
    assert reason(file).startswith(f"{file} cannot be loaded: {error}")


def test_a_module_that_cannot_be_imported_says_why() -> None:
    assert reason("no.such.module:Class").startswith(
        "cannot import no.such.module: ModuleNotFoundError"
    )


def test_a_module_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, "1 / 0", "failing_policy_module.py")
    monkeypatch.syspath_prepend(tmp_path)
    error = reason("failing_policy_module:Own")
    assert error.startswith("cannot import failing_policy_module: ZeroDivisionError")


@pytest.mark.parametrize(
    ("text", "classes"),
    [
        ("from services.scheduler.policies.greedy import Greedy\n", "none"),
        (OWN.replace("def decide", "def other"), "none; Own has no decide"),
        (OWN + OWN.replace("Own", "Other"), "Own, Other"),
    ],
)
def test_a_file_without_exactly_one_policy_names_its_policies(
    tmp_path: Path, text: str, classes: str
) -> None:
    file = written(tmp_path, text)
    assert reason(file) == f"{file}: one Policy or ClusterPolicy class expected, found: {classes}"


def test_a_missing_class_says_so() -> None:
    reference = "services.scheduler.policies.greedy:Gready"
    assert (
        reason(reference) == f"{reference}: one Policy or ClusterPolicy class expected, found: none"
    )


@pytest.mark.parametrize(
    "line", ["", 'name = ""', 'name = "My Own"', 'name = "9th"', 'name = "a.b"']
)
def test_a_missing_or_invalid_name_says_what_to_do(tmp_path: Path, line: str) -> None:
    file = written(tmp_path, OWN.replace('name = "own"', line))
    error = reason(file)
    assert error.startswith(f"{file}: ")
    assert "is no scheduler name" in error
    assert error.endswith("; set the class attribute `name`")


def test_a_policy_whose_constructor_fails_says_why(tmp_path: Path) -> None:
    text = OWN + "\n    def __init__(self, size):\n        pass\n"
    assert "Own() failed: TypeError" in reason(written(tmp_path, text))
