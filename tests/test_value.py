"""Values against dataclasses: the same class body under both decorators behaves the same."""

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from builder.value import field, value


@value
class Point:
    """A value with everything that fields can be."""

    KIND: ClassVar[str] = "point"

    x: int
    y: int = 0
    tags: tuple[str, ...] = field(default_factory=tuple)
    at: str = field(default="", compare=False)
    raw: bytes = field(default=b"", repr=False, hash=False)

    @property
    def total(self) -> int:
        return self.x + self.y


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Standard:
    """The same, as the standard library makes it."""

    KIND: ClassVar[str] = "point"

    x: int
    y: int = 0
    tags: tuple[str, ...] = dataclasses.field(default_factory=tuple)
    at: str = dataclasses.field(default="", compare=False)
    raw: bytes = dataclasses.field(default=b"", repr=False, hash=False)

    @property
    def total(self) -> int:
        return self.x + self.y


@value(kw_only=False, order=True)
class Version:
    """A value with order, its fields given by position."""

    major: int
    minor: int = 0


@value
class Checked:
    """A value that checks itself."""

    count: int

    def __post_init__(self) -> None:
        if self.count < 0:
            raise ValueError(self.count)


BOTH = pytest.mark.parametrize("made", [Point, Standard], ids=["value", "dataclass"])


@BOTH
def test_equal_fields_make_equal_values_and_equal_hashes(made: Callable[..., Any]) -> None:
    assert made(x=1, at="here") == made(x=1, at="there")
    assert hash(made(x=1, at="here")) == hash(made(x=1, at="there"))
    assert made(x=1) != made(x=2)
    assert made(x=1, raw=b"a") != made(x=1, raw=b"b")
    assert hash(made(x=1, raw=b"a")) == hash(made(x=1, raw=b"b"))
    assert made(x=1) != (1, 0, ())


@BOTH
def test_defaults_methods_and_class_variables_work(made: Any) -> None:
    assert (made(x=1).y, made(x=1).tags, made(x=1, y=2).total, made.KIND) == (0, (), 3, "point")


@BOTH
def test_the_repr_shows_the_fields_that_it_may(made: Any) -> None:
    assert repr(made(x=1, raw=b"secret")) == f"{made.__name__}(x=1, y=0, tags=(), at='')"


@BOTH
def test_a_value_cannot_be_changed(made: Any) -> None:
    point = made(x=1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        point.x = 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        del point.x
    assert point.x == 1


@BOTH
def test_there_is_no_room_for_other_attributes(made: Any) -> None:
    assert not hasattr(made(x=1), "__dict__")


@BOTH
@pytest.mark.parametrize(
    ("values", "given"),
    [
        pytest.param((), {}, id="a field is missing"),
        pytest.param((), {"x": 1, "z": 2}, id="a field is unknown"),
        pytest.param((1,), {}, id="by position"),
    ],
)
def test_wrong_fields_are_a_type_error(made: Any, values: Any, given: Any) -> None:
    with pytest.raises(TypeError):
        made(*values, **given)


@BOTH
def test_replace_makes_another_value(made: Any) -> None:
    point = made(x=1, y=2)
    assert dataclasses.replace(point, y=3) == made(x=1, y=3)
    assert point.y == 2


@BOTH
def test_fields_are_told_as_dataclasses_tell_them(made: Any) -> None:
    told = [(item.name, item.compare, item.repr, item.kw_only) for item in dataclasses.fields(made)]
    assert told == [
        ("x", True, True, True),
        ("y", True, True, True),
        ("tags", True, True, True),
        ("at", False, True, True),
        ("raw", True, False, True),
    ]
    assert dataclasses.is_dataclass(made)


@BOTH
def test_copies_and_pickles_are_equal(made: Any) -> None:
    point = made(x=1, tags=("a",))
    assert copy.deepcopy(point) == point
    assert copy.copy(point) == point
    assert pickle.loads(pickle.dumps(point)) == point


def test_values_with_order_compare_as_their_fields() -> None:
    versions = [Version(2), Version(1, 5), Version(1)]
    assert sorted(versions) == [Version(1), Version(1, 5), Version(2)]
    assert Version(1) <= Version(1) < Version(1, 1)
    assert Version(2) > Version(1) >= Version(1)
    with pytest.raises(TypeError):
        assert Version(1) < 2  # type: ignore[operator]  # the point
    match Version(1, 5):
        case Version(major, minor):
            assert (major, minor) == (1, 5)


def test_a_field_given_twice_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="'major' is given twice"):
        Version(1, major=1)  # type: ignore[misc]  # the point
    with pytest.raises(TypeError, match="3 fields given by position"):
        Version(1, 2, 3)  # type: ignore[call-arg]  # the point


def test_post_init_may_refuse() -> None:
    assert Checked(count=1).count == 1
    with pytest.raises(ValueError, match="-1"):
        Checked(count=-1)


def test_a_value_inherits_from_no_other() -> None:
    with pytest.raises(TypeError, match="a value does not inherit from another"):

        @value
        class More(Point):
            z: int
