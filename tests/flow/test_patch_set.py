"""The bytes of a patch set: verified against the trees that are pinned, and asked for once."""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NoReturn

import pytest

from builder import git_tree, notes
from builder.digest import ObjectId
from builder.errors import IntegrityError, ProjectError
from builder.lock.model import GenesisPin, Lock, Subtree
from builder.materials import PinnedMaterials
from builder.ports import GitFile, GitSubtree
from tests.memory_store import MemoryStore

COMMIT = ObjectId("c" * 40)
FILES = {
    "vllm/_genesis/__init__.py": b"",
    "vllm/_genesis/patches/apply_all.py": b"print('patched')\n",
    "tools/plugin/pyproject.toml": b"[project]\n",
    "README": b"read me\n",
}


@dataclass
class Repository:
    """A :class:`builder.ports.Git` with one commit, as far as these tests ask. ``lies`` are the
    files that it hands out instead."""

    content: Mapping[str, bytes]
    lies: Mapping[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def below(self, path: str, *, lies: bool = False) -> tuple[GitFile, ...]:
        start = f"{path}/" if path else ""
        content = {**self.content, **self.lies} if lies else self.content
        return tuple(
            GitFile(path=name.removeprefix(start), mode="100644", data=data)
            for name, data in sorted(content.items())
            if name.startswith(start)
        )

    def tree(self, repository: str, commit: str) -> str:
        self.asked.append(f"tree {commit}")
        return str(git_tree.tree_id(self.below(""), like=COMMIT))

    def subtree(self, repository: str, commit: str, path: str) -> GitSubtree:
        self.asked.append(f"subtree {path}")
        tree = git_tree.tree_id(self.below(path), like=COMMIT)
        return GitSubtree(tree=str(tree), files=self.below(path, lies=True))

    def files(self, repository: str, commit: str, paths: tuple[str, ...]) -> NoReturn:
        raise AssertionError(paths)

    def listing(self, repository: str, commit: str) -> NoReturn:
        raise AssertionError(commit)

    def diff(self, repository: str, base: str, head: str) -> NoReturn:
        raise AssertionError((base, head))


def pinned(repository: Repository) -> GenesisPin:
    def subtree(path: str) -> Subtree:
        return Subtree(path=path, tree=git_tree.tree_id(repository.below(path), like=COMMIT))

    return GenesisPin(
        name="patches",
        repository="https://git.example/patches",
        commit=COMMIT,
        tree=git_tree.tree_id(repository.below(""), like=COMMIT),
        payload=subtree("vllm/_genesis"),
        plugin=subtree("tools/plugin"),
        at="lockfiles/genesis.yaml:3: genesis.patches",
    )


@pytest.fixture
def repository() -> Repository:
    return Repository(FILES)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def materials(repository: Repository, store: MemoryStore) -> PinnedMaterials:
    def nothing() -> NoReturn:
        raise AssertionError("nobody asks for it")

    return PinnedMaterials(
        lock=Lock(),
        store=store,
        git=lambda: repository,
        wheels=nothing,
        make_sandbox=nothing,
        open_copy=lambda _: nothing(),
    )


def test_payload_and_plugin_are_the_directories_that_the_pin_names(
    repository: Repository, store: MemoryStore
) -> None:
    pin = pinned(repository)
    found = materials(repository, store)
    assert pin.payload is not None
    assert found.payload(pin) == GitSubtree(
        tree=str(pin.payload.tree),
        files=(
            GitFile(path="__init__.py", mode="100644", data=b""),
            GitFile(path="patches/apply_all.py", mode="100644", data=b"print('patched')\n"),
        ),
    )
    plugin = found.plugin(pin)
    assert plugin is not None
    assert [file.path for file in plugin.files] == ["pyproject.toml"]


def test_a_patch_set_without_a_plugin_has_none(repository: Repository, store: MemoryStore) -> None:
    assert materials(repository, store).plugin(replace(pinned(repository), plugin=None)) is None
    assert repository.asked == []


def test_git_is_asked_once(repository: Repository, store: MemoryStore) -> None:
    pin = pinned(repository)
    first = materials(repository, store).payload(pin)
    assert repository.asked == [f"tree {COMMIT}", "subtree vllm/_genesis"]
    repository.asked.clear()
    assert materials(repository, store).payload(pin) == first
    assert repository.asked == []


def test_a_payload_that_another_commit_has_too_is_not_asked_for_again(
    repository: Repository, store: MemoryStore
) -> None:
    pin = pinned(repository)
    first = materials(repository, store).payload(pin)
    repository.asked.clear()
    other = replace(pin, commit=ObjectId("d" * 40), tree=ObjectId("e" * 40))
    assert materials(repository, store).payload(other) == first
    assert repository.asked == []


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda _: b"\0", id="not deflated"),
        pytest.param(lambda _: zlib.compress(b"[]"), id="no files"),
        pytest.param(lambda _: zlib.compress(b"{"), id="half a memo"),
        pytest.param(
            lambda raw: zlib.compress(zlib.decompress(raw).replace(b"patched", b"Patched")),
            id="another content",
        ),
    ],
)
def test_a_memo_is_a_claim(repository: Repository, store: MemoryStore, spoil: object) -> None:
    pin = pinned(repository)
    assert pin.payload is not None
    first = materials(repository, store).payload(pin)
    key = notes.TREE, str(pin.payload.tree)
    kept = store.memos[key]
    store.memos[key] = spoil(kept)  # type: ignore[operator]  # one of the functions above
    repository.asked.clear()
    assert materials(repository, store).payload(pin) == first
    assert repository.asked == [f"tree {COMMIT}", "subtree vllm/_genesis"]
    assert store.memos[key] == kept


def test_a_commit_with_another_tree_is_refused(repository: Repository, store: MemoryStore) -> None:
    pin = replace(pinned(repository), tree=ObjectId("e" * 40))
    with pytest.raises(IntegrityError) as caught:
        materials(repository, store).payload(pin)
    tree = git_tree.tree_id(repository.below(""), like=COMMIT)
    assert caught.value.message == (
        f"lockfiles/genesis.yaml:3: genesis.patches: commit {COMMIT} has tree {tree}, the lock pins"
        f" {'e' * 40}"
    )
    assert store.memos == {}


def test_files_that_are_not_those_of_the_tree_are_refused(
    repository: Repository, store: MemoryStore
) -> None:
    """Whatever git says that they are: the id is computed from what is going to be installed."""
    repository.lies = {"vllm/_genesis/__init__.py": b"import evil\n"}
    pin = pinned(repository)
    with pytest.raises(IntegrityError) as caught:
        materials(repository, store).payload(pin)
    got = git_tree.tree_id(repository.below("vllm/_genesis", lies=True), like=COMMIT)
    assert pin.payload is not None
    assert caught.value.message == (
        "lockfiles/genesis.yaml:3: genesis.patches.payload: 'vllm/_genesis' at cccccccccccc has"
        f" tree {got}, the lock pins {pin.payload.tree}"
    )
    assert store.memos == {}


def test_a_pin_that_does_not_say_what_to_install_is_refused(
    repository: Repository, store: MemoryStore
) -> None:
    with pytest.raises(ProjectError) as caught:
        materials(repository, store).payload(replace(pinned(repository), payload=None))
    assert caught.value.message == (
        "lockfiles/genesis.yaml:3: genesis.patches: no 'payload', so that nobody knows what to"
        " install"
    )
    assert repository.asked == []
