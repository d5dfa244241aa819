"""Frozen values: what ``@dataclass(frozen=True, slots=True, kw_only=True)`` gives, at once.

:mod:`dataclasses` writes the source of six methods for each class and compiles it, more than half a
millisecond a class, at every start. The flow has seventy such types: 43 ms, beside 12 for Python
itself. Here the same methods are closures over the names of the fields: 2 ms.

A class made by :func:`value` is a dataclass to everything that asks (``dataclasses.replace``,
``fields``, ``asdict``, type checkers); tests hold the two together. Types that are made a hundred
thousand times in a build (:class:`builder.tree.Entry`) are real dataclasses: those make instances
faster.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, dataclass_transform, overload

if TYPE_CHECKING:
    import dataclasses

T = TypeVar("T")
_MISSING: Any = object()


class _Field:
    """What :func:`field` says of a field."""

    __slots__ = ("compare", "default", "default_factory", "hash", "repr")

    def __init__(
        self, default: Any, default_factory: Any, *, compare: bool, hash: bool, repr: bool
    ) -> None:
        self.default = default
        self.default_factory = default_factory
        self.compare = compare
        self.hash = compare and hash
        self.repr = repr


def field(
    *,
    default: Any = _MISSING,
    default_factory: Any = _MISSING,
    compare: bool = True,
    hash: bool = True,
    repr: bool = True,
) -> Any:
    """A field that is more than its type and default; the meaning is that of
    :func:`dataclasses.field`."""
    return _Field(default, default_factory, compare=compare, hash=hash, repr=repr)


@overload
def value(cls: type[T], /) -> type[T]: ...
@overload
def value(*, kw_only: bool = ..., order: bool = ...) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def value(
    cls: type[T] | None = None, /, *, kw_only: bool = True, order: bool = False
) -> type[T] | Callable[[type[T]], type[T]]:
    """Make ``cls`` a frozen, slotted value, equal to those of its class with equal fields.

    Args:
        cls: A class with annotated fields. It inherits from no other value and does not use the
            ``super()`` without arguments (the class is made anew, for its slots).
        kw_only: Whether fields can be given by keyword only.
        order: Whether values compare as the tuples of their fields do.
    """
    if cls is None:
        return lambda other: _made(other, kw_only=kw_only, order=order)
    return _made(cls, kw_only=kw_only, order=order)


def _made(cls: type[T], *, kw_only: bool, order: bool) -> type[T]:
    if any(hasattr(base, "__dataclass_fields__") for base in cls.__bases__):
        raise TypeError(f"{cls.__name__}: a value does not inherit from another")
    fields = _fields(cls)
    kept = {name: item for name, item in vars(cls).items() if name not in fields}
    kept.pop("__dict__", None)
    kept.pop("__weakref__", None)
    kept |= {
        "__slots__": tuple(fields),
        "__qualname__": cls.__qualname__,
        "__match_args__": () if kw_only else tuple(fields),
    }
    metaclass: Any = type(cls)  # that of Protocol and of Generic is another than type
    made: Any = metaclass(cls.__name__, cls.__bases__, kept)
    made.__dataclass_fields__ = _StandardFields(fields, kw_only=kw_only)
    made.__init__ = _init(made, fields, kw_only=kw_only)
    made.__repr__ = _repr(tuple(name for name, item in fields.items() if item.repr))
    made.__setattr__ = made.__delattr__ = _refuse
    made.__reduce__ = _reduce
    compared = _key(name for name, item in fields.items() if item.compare)
    hashed = _key(name for name, item in fields.items() if item.hash)
    made.__eq__ = lambda self, other: (
        compared(self) == compared(other) if other.__class__ is made else NotImplemented
    )
    made.__hash__ = lambda self: hash(hashed(self))
    if order:
        made.__lt__ = lambda self, other: (
            compared(self) < compared(other) if other.__class__ is made else NotImplemented
        )
        made.__gt__ = lambda self, other: other < self
        made.__le__ = lambda self, other: not other < self
        made.__ge__ = lambda self, other: not self < other
    finished: type[T] = made
    return finished


def _fields(cls: type) -> dict[str, _Field]:
    fields = {}
    for name, kind in cls.__annotations__.items():
        if kind is ClassVar or getattr(kind, "__origin__", None) is ClassVar:
            continue
        given = vars(cls).get(name, _MISSING)
        fields[name] = given if isinstance(given, _Field) else field(default=given)
    return fields


def _init(made: type, fields: dict[str, _Field], *, kw_only: bool) -> Callable[..., None]:
    names = tuple(fields)
    setters = {name: vars(made)[name].__set__ for name in names}
    optional = {
        name: item
        for name, item in fields.items()
        if item.default is not _MISSING or item.default_factory is not _MISSING
    }
    check = getattr(made, "__post_init__", None)

    def init(self: Any, *values: Any, **given: Any) -> None:
        if values:
            if kw_only or len(values) > len(names):
                raise TypeError(f"{made.__name__}: {len(values)} fields given by position")
            for name, item in zip(names, values, strict=False):
                if name in given:
                    raise TypeError(f"{made.__name__}: {name!r} is given twice")
                given[name] = item
        for name, item in optional.items():
            if name not in given:
                fresh = item.default_factory
                given[name] = item.default if fresh is _MISSING else fresh()
        if given.keys() != setters.keys():
            odd = sorted(given.keys() ^ setters.keys())
            raise TypeError(f"{made.__name__}: missing or unknown fields {odd}")
        for name, item in given.items():
            setters[name](self, item)
        if check is not None:
            check(self)

    return init


def _repr(names: tuple[str, ...]) -> Callable[[Any], str]:
    def represent(self: Any) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({shown})"

    return represent


def _key(names: Any) -> Callable[[Any], Any]:
    """What equality, order and hash look at. A single field is taken as it is: the same."""
    wanted = tuple(names)
    return attrgetter(*wanted) if wanted else lambda _: ()


def _refuse(self: Any, name: str, *_: Any) -> None:
    from dataclasses import FrozenInstanceError  # noqa: PLC0415 - only a bug comes here

    raise FrozenInstanceError(f"cannot change field {name!r} of a {type(self).__name__}")


def _reduce(self: Any) -> Any:
    names = type(self).__slots__
    return _again, (type(self), {name: getattr(self, name) for name in names})


def _again(made: type[T], fields: dict[str, Any]) -> T:
    return made(**fields)


class _StandardFields:
    """``__dataclass_fields__``, made of :mod:`dataclasses` when something first asks for it."""

    def __init__(self, fields: dict[str, _Field], *, kw_only: bool) -> None:
        self._fields = fields
        self._kw_only = kw_only

    def __get__(self, instance: object, owner: Any) -> "dict[str, dataclasses.Field[Any]]":
        import dataclasses  # noqa: PLC0415 - see the module's docstring

        def standard(item: _Field) -> Any:
            given: dict[str, Any] = {}
            if item.default is not _MISSING:
                given["default"] = item.default
            if item.default_factory is not _MISSING:
                given["default_factory"] = item.default_factory
            return dataclasses.field(
                **given, compare=item.compare, hash=item.hash, repr=item.repr, kw_only=self._kw_only
            )

        own = owner.__annotations__
        model = dataclasses.make_dataclass(
            owner.__name__,
            [(name, own[name], standard(item)) for name, item in self._fields.items()],
            kw_only=self._kw_only,
            frozen=True,
        )
        fields: dict[str, dataclasses.Field[Any]] = model.__dataclass_fields__  # type: ignore[attr-defined]  # made above
        owner.__dataclass_fields__ = fields
        return fields
