"""Lines about wrong data: where it is, what is wrong, what was given and what may be."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from shared.domain.spec_model import problem_at
from shared.domain.validation_messages import explain


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Round(Strict):
    kind: Literal["round"]
    radius: float = Field(gt=0)


class Square(Strict):
    kind: Literal["square"]
    edge: float = 1

    @model_validator(mode="after")
    def _small(self) -> Square:
        if self.edge > 9:
            raise ValueError("too large for the table")
        return self


class Leg(Strict):
    length: float = 1
    wooden: bool = True


class Table(Strict):
    top: Annotated[Round | Square, Field(discriminator="kind")] = Square(kind="square")
    legs: tuple[Leg, ...] = ()
    named: dict[str, Leg] = {}
    spare: Leg | None = None
    copy_: Leg = Field(default=Leg(), alias="copy")
    note: str = ""

    @model_validator(mode="after")
    def _stands(self) -> Table:
        if len(self.legs) in (1, 2):
            raise ValueError("it falls over")
        return self


def lines(data: Any) -> list[str]:
    with pytest.raises(ValidationError) as caught:
        Table.model_validate(data)
    return explain(caught.value, Table, "table")


LEG = "unknown key (did you mean length?); allowed: length, wooden"


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ({"spair": {}}, "spair: unknown key (did you mean spare?); allowed: "
                        "copy, legs, named, note, spare, top"),
        ({"xyz": 1}, "xyz: unknown key; allowed: copy, legs, named, note, spare, top"),
        ({"legs": [{}, {}, {"lenght": 1}]}, f"legs.2.lenght: {LEG}"),
        ({"named": {"left": {"lenght": 1}}}, f"named.left.lenght: {LEG}"),
        ({"spare": {"lenght": 1}}, f"spare.lenght: {LEG}"),
        ({"copy": {"lenght": 1}}, f"copy.lenght: {LEG}"),
        ({"top": {"kind": "square", "edg": 1}},
         "top.edg: unknown key (did you mean edge?); allowed: edge, kind"),
        ({"top": {"kind": "round", "radius": 1, "edge": 1}},
         "top.edge: unknown key; allowed: kind, radius"),
    ],
)  # fmt: skip
def test_an_unknown_key_is_named_with_those_that_are_allowed_there(data: Any, line: str) -> None:
    assert lines(data) == [line]


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ({"note": 5}, "note: Input should be a valid string (got 5)"),
        ({"note": None}, "note: Input should be a valid string (got None)"),
        ({"top": {"kind": "round", "radius": 0}},
         "top.radius: Input should be greater than 0 (got 0)"),
        ({"top": {"kind": "round"}}, "top.radius: Field required"),
        ({"top": {"kind": "square", "edge": 10}}, "top: too large for the table"),
        ({"legs": [{}]}, "table: it falls over"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_shown_where_it_is(data: Any, line: str) -> None:
    assert lines(data) == [line]


def test_a_key_that_is_called_like_a_choice_is_a_key_all_the_same() -> None:
    assert lines({"named": {"round": {"length": "x"}}})[0].startswith("named.round.length: ")
    assert lines({"square": 1})[0].startswith("square: unknown key")
    assert lines({"top": {"kind": "square", "square": 1}})[0].startswith("top.square: unknown key")


class Drawer(Strict):
    lock: Annotated[int, Field(ge=0)] | Literal["none"] = "none"
    wood: str = Field(description="oak, or any other")
    sizes: tuple[int, ...] = ()

    @model_validator(mode="after")
    def _sizes_differ(self) -> Drawer:
        for number, size in enumerate(self.sizes):
            if size in self.sizes[:number]:
                raise problem_at(f"{size} is given twice", "sizes", number)
        return self


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ({}, "wood: Field required: oak, or any other"),
        ({"wood": "oak", "sizes": 3}, "sizes: Input should be a list (got 3)"),
        ({"wood": "oak", "sizes": [3, 5, 3]}, "sizes.2: 3 is given twice"),
        ({"wood": "oak", "lock": -1}, "lock: Input should be greater than or equal to 0 (got -1)"),
    ],
)
def test_the_field_is_named_as_the_user_wrote_it(data: Any, line: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Drawer.model_validate(data)
    assert explain(caught.value, Drawer, "drawer")[0] == line


def test_every_problem_has_its_line() -> None:
    said = lines({"note": 5, "spare": {"wooden": "perhaps", "x": 1}, "legs": 3})
    fields = sorted(line.split(":")[0] for line in said)
    assert fields == ["legs", "note", "spare.wooden", "spare.x"]


@pytest.mark.parametrize("value", ["x" * 10_000, 10**400])
def test_of_a_long_value_the_ends_are_shown(value: Any) -> None:
    (line,) = lines({"spare": {"wooden": value}})
    start, end = repr(value)[:20], repr(value)[-20:]
    assert start in line
    assert end in line
    assert len(line) < 250


def test_what_is_no_mapping_at_all_is_called_by_the_name_of_the_whole() -> None:
    (line,) = lines([1])
    assert line.startswith("table: Input should be a valid dictionary")


def test_a_word_for_a_number_is_told_what_is_allowed_without_the_parser() -> None:
    class Seeded(Strict):
        seed: int

    with pytest.raises(ValidationError) as caught:
        Seeded.model_validate({"seed": "x"})
    assert explain(caught.value, Seeded, "spec") == [
        "seed: Input should be a valid whole number (got 'x')"
    ]
