"""Keys by name: files that are whole, modes, names, and what may lie there instead."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from builder.adapters.keys.directory import (
    KeyDirectory,
    KeyState,
    keys_directory,
)
from builder.adapters.keys.files import read_private_file, write_whole
from builder.errors import EnvironmentFault, IntegrityError, PolicyError, UsageError
from tests.cli.conftest import tree
from tests.keys.samples import ED25519, P256


@pytest.fixture
def keys(tmp_path: Path) -> KeyDirectory:
    return KeyDirectory(tmp_path / "config" / "keys")


def modes(directory: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in directory.iterdir()}


def test_a_key_is_kept_for_its_owner_alone_whatever_the_umask(keys: KeyDirectory) -> None:
    before = os.umask(0)
    try:
        keys.put("release", b"private", P256.public, force=False)
    finally:
        os.umask(before)
    assert keys.path.stat().st_mode & 0o777 == 0o700
    assert modes(keys.path) == {"release.key": 0o600, "release.pub": 0o644}
    assert keys.private("release").read_bytes() == b"private"
    entry = keys.entry("release")
    assert (entry.public, entry.state, entry.successor) == (P256.public, KeyState.ACTIVE, None)


def test_a_key_is_not_overwritten_unless_it_is_said(keys: KeyDirectory) -> None:
    keys.put("release", b"first", P256.public, force=False)
    keys.revoke("release", reason=None)
    before = tree(keys.path)
    with pytest.raises(UsageError) as caught:
        keys.put("release", b"second", ED25519.public, force=False)
    assert str(caught.value) == f"there is a key 'release' in {keys.path}"
    assert tree(keys.path) == before
    keys.put("release", b"second", ED25519.public, force=True)
    assert keys.entry("release").state is KeyState.ACTIVE
    assert keys.entry("release").public == ED25519.public


def test_of_many_who_want_a_name_one_gets_it(keys: KeyDirectory) -> None:
    got: list[int] = []

    def want(number: int) -> None:
        try:
            keys.put("release", b"%d" % number, P256.public, force=False)
        except UsageError:
            return
        got.append(number)

    threads = [threading.Thread(target=want, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert keys.private("release").read_bytes() == b"%d" % got[0]
    assert len(got) == 1
    assert set(modes(keys.path)) == {"release.key", "release.pub"}


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "../a", "a.key", "-a", "a" * 65, "a b", "\u00e4", "a\n", "a\0"]
)
def test_what_is_no_name_is_refused(name: str, keys: KeyDirectory) -> None:
    for act in (
        lambda: keys.put(name, b"", P256.public, force=True),
        lambda: keys.entry(name),
        lambda: keys.private(name),
        lambda: keys.revoke(name, reason=None),
    ):
        with pytest.raises(UsageError) as caught:
            act()
        assert str(caught.value) == f"{name!r} is no name for a key"


def test_what_is_there_is_listed_and_what_is_no_key_is_not(keys: KeyDirectory) -> None:
    assert keys.names() == ()
    for name in ("b", "a-2"):
        keys.put(name, b"x", P256.public, force=False)
    for other in ("lone.pub", "a b.key", ".hidden.key", "notes.txt"):
        (keys.path / other).write_bytes(b"")
    assert keys.names() == ("a-2", "b")
    with pytest.raises(UsageError, match=r"^no key 'lone' in "):
        keys.entry("lone")


def test_to_revoke_what_is_not_there_makes_nothing(keys: KeyDirectory) -> None:
    with pytest.raises(UsageError, match=r"^no key 'none' in "):
        keys.revoke("none", reason=None)
    assert not keys.path.exists()


def test_a_state_is_noted_and_what_was_known_stays(keys: KeyDirectory) -> None:
    keys.put("release", b"x", P256.public, force=False)
    old, new = keys.succeed("release", "release-2", b"y", ED25519.public)
    assert (old, new) == (keys.entry("release"), keys.entry("release-2"))
    assert (old.state, old.successor, new.state) == ("superseded", "release-2", "active")
    keys.revoke("release", reason="lost")
    again = keys.revoke("release", reason=None)
    assert again == keys.entry("release")
    assert (again.state, again.successor, again.reason) == ("revoked", "release-2", "lost")


def test_a_key_has_one_successor(keys: KeyDirectory) -> None:
    keys.put("release", b"x", P256.public, force=False)
    keys.succeed("release", "next", b"y", ED25519.public)
    before = tree(keys.path)
    with pytest.raises(UsageError, match="has a successor: 'next'"):
        keys.succeed("release", "other", b"z", ED25519.public)
    assert tree(keys.path) == before


def test_what_a_killed_process_left_is_removed_with_the_next_write(keys: KeyDirectory) -> None:
    keys.put("release", b"x", P256.public, force=False)
    (keys.path / ".release.key.1.tmp").write_bytes(b"half")
    assert keys.names() == ("release",)
    keys.revoke("release", reason=None)
    assert set(modes(keys.path)) == {"release.key", "release.pub", "release.json"}


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("", "not JSON"),
        ("[]", "expected 'state'"),
        ('{"state": "fine"}', "expected a state of active, superseded, revoked"),
        ('{"state": []}', "expected a state of"),
        ('{"state": "active", "successor": 2}', "expected a state of"),
        ('{"state": "revoked", "state": "active"}', "duplicate key 'state'"),
        ('{"state": "active", "more": "x"}', "expected 'state', and perhaps"),
    ],
)
def test_a_state_that_is_none_is_refused(said: str, message: str, keys: KeyDirectory) -> None:
    """One that is not understood must not turn a revoked key into one that signs."""
    keys.put("release", b"x", P256.public, force=False)
    (keys.path / "release.json").write_text(said)
    with pytest.raises(IntegrityError, match=message):
        keys.entry("release")


def test_successors_are_counted(keys: KeyDirectory) -> None:
    assert keys.free_name("release") == "release-2"
    for name in ("release", "release-2", "release-3", "v1-0"):
        keys.put(name, b"x", P256.public, force=False)
    assert keys.free_name("release") == keys.free_name("release-2") == "release-4"
    assert keys.free_name("v1-0") == "v1-1"


def test_a_directory_where_others_write_is_refused(keys: KeyDirectory) -> None:
    keys.path.mkdir(parents=True)
    keys.path.chmod(0o770)
    with pytest.raises(EnvironmentFault) as caught:
        keys.put("release", b"x", P256.public, force=False)
    assert str(caught.value) == f"{keys.path}: others can write there"
    assert caught.value.hint == f"chmod 700 {keys.path}"
    assert list(keys.path.iterdir()) == []


def test_a_file_in_place_of_the_directory_is_said(tmp_path: Path) -> None:
    (tmp_path / "keys").write_bytes(b"")
    with pytest.raises(EnvironmentFault, match="cannot be used"):
        KeyDirectory(tmp_path / "keys").put("a", b"x", P256.public, force=False)
    with pytest.raises(EnvironmentFault, match="cannot be listed: Not a directory"):
        KeyDirectory(tmp_path / "keys").names()


def test_a_missing_public_half_is_said(keys: KeyDirectory) -> None:
    keys.put("release", b"x", P256.public, force=False)
    (keys.path / "release.pub").unlink()
    with pytest.raises(IntegrityError, match="the public half is missing"):
        keys.entry("release")


@pytest.mark.parametrize("end", ["pub", "json"])
@pytest.mark.parametrize("other", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_not_waited_for(
    keys: KeyDirectory, end: str, other: Callable[[Path], None]
) -> None:
    keys.put("release", b"x", P256.public, force=False)
    path = keys.path / f"release.{end}"
    path.unlink(missing_ok=True)
    other(path)
    with pytest.raises(IntegrityError) as caught:
        keys.entry("release")
    assert caught.value.message == f"{path}: expected a file, got something else"


def test_where_the_directory_is() -> None:
    assert keys_directory({"BUILDER_KEYS": "/k", "XDG_CONFIG_HOME": "/c"}) == Path("/k")
    assert keys_directory({"XDG_CONFIG_HOME": "/c"}) == Path("/c/builder/keys")
    for home in ({}, {"XDG_CONFIG_HOME": "relative"}, {"XDG_CONFIG_HOME": ""}):
        assert keys_directory(home) == Path.home() / ".config/builder/keys"


def test_a_key_that_others_can_read_is_refused_unless_it_is_encrypted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "a.key"
    file.write_bytes(b"key")
    for mode in (0o640, 0o604, 0o644):
        file.chmod(mode)
        with pytest.raises(PolicyError) as caught:
            read_private_file(file, encrypted=lambda _: False)
        assert f"{file}: others can read it (mode {mode:04o})" in str(caught.value)
        assert read_private_file(file, encrypted=lambda _: True) == b"key"
    assert caplog.messages[-1] == f"{file}: others can read it (mode 0644); chmod 600 {file}"
    caplog.clear()
    for mode in (0o600, 0o400):
        file.chmod(mode)
        assert read_private_file(file, encrypted=lambda _: False) == b"key"
    assert caplog.messages == []


def test_what_is_no_file_is_no_key(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(IntegrityError, match="expected a file, got something else"):
            read_private_file(path, encrypted=lambda _: False)
    with pytest.raises(UsageError, match=r"^no file "):
        read_private_file(tmp_path / "none", encrypted=lambda _: False)


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    file = tmp_path / "out"
    write_whole(file, b"first", mode=0o600, force=False)
    with pytest.raises(UsageError, match=r"^there is a file "):
        write_whole(file, b"second", mode=0o600, force=False)
    with pytest.raises(EnvironmentFault, match="cannot be written"):
        write_whole(tmp_path / "none" / "out", b"x", mode=0o600, force=False)
    assert tree(tmp_path) == {"out": b"first"}
    write_whole(file, b"second", mode=0o644, force=True)
    assert tree(tmp_path) == {"out": b"second"}
