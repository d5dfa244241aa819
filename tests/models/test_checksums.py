"""Checksum files in foreign dress (case 45)."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.digest import Digest, directory_digest
from builder.errors import IntegrityError
from builder.lock.model import ModelFile
from builder.models.checksums import LIMIT, checksums, compare, read_checksums
from builder.models.published import Published
from tests.models.worlds import lay, pin_of, tiny

FILES = {"a": b"1", "sub/b c.json": b"2", "ä(1).bin": b"3"}
WANTED = {path: Digest.of(data) for path, data in FILES.items()}


def lines(form: str, end: str = "\n") -> str:
    return "".join(form.format(hex=digest.hex, name=path) + end for path, digest in WANTED.items())


GNU = lines("{hex}  {name}")


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(GNU.encode(), id="sha256sum"),
        pytest.param(lines("{hex} *{name}").encode(), id="binary mode"),
        pytest.param(lines("{hex} {name}").encode(), id="one blank"),
        pytest.param(lines("{hex}  ./{name}").encode(), id="dot slash"),
        pytest.param(lines("SHA256 ({name}) = {hex}").encode(), id="BSD"),
        pytest.param(lines("SHA256({name})= {hex}").encode(), id="OpenSSL"),
        pytest.param(lines("SHA2-256({name})= {hex}").encode(), id="OpenSSL 3"),
        pytest.param(lines("{hex}  {name}", "\r\n").encode(), id="CRLF"),
        pytest.param(GNU.encode("utf-8-sig"), id="byte order mark"),
        pytest.param(lines("{hex}  {name}", "\r\n").encode("utf-16"), id="UTF-16"),
        pytest.param("\ufeff".encode("utf-16-be") + GNU.encode("utf-16-be"), id="UTF-16 BE"),
        pytest.param(GNU.rstrip("\n").encode(), id="no last newline"),
        pytest.param(f"# sums\n\n{GNU}\n \n{GNU}".encode(), id="comments, blanks, twice the same"),
        pytest.param(
            GNU.replace(WANTED["a"].hex, WANTED["a"].hex.upper()).encode(), id="upper case"
        ),
        pytest.param(lines("\\{hex}  {name}").encode(), id="escaped without an escape"),
    ],
)
def test_every_dialect_says_the_same(data: bytes) -> None:
    assert read_checksums(data, at="SHA256SUMS") == WANTED


HEX = Digest.of(b"").hex


@pytest.mark.parametrize(
    "text, message",
    [
        pytest.param("", "SHA256SUMS: no checksums in it", id="empty"),
        pytest.param("# nothing\n\n", "SHA256SUMS: no checksums in it", id="comments"),
        pytest.param(f"{HEX}  a\nhello\n", "SHA256SUMS:2: not a line of a checksum", id="text"),
        pytest.param("<html>", "not a line of a checksum file: '<html>'", id="a page"),
        pytest.param(f"{HEX}\n", "not a line", id="no name"),
        pytest.param(f"{HEX}  \n", "not a line|an empty path|plain", id="blank name"),
        pytest.param(f"{HEX[:-1]}  a", "of 64 hex digits, got one of 63", id="63"),
        pytest.param(f"{HEX[:40]}  a", "got one of 40", id="sha1"),
        pytest.param(f"{HEX[:32]}  a", "got one of 32", id="md5"),
        pytest.param(f"MD5 (a) = {HEX[:32]}", "got MD5 of 32", id="BSD md5"),
        pytest.param(f"BLAKE2S (a) = {HEX}", "got BLAKE2S of 64", id="another hash of 64"),
        pytest.param(f"{HEX}  /etc/passwd", "not a plain relative path", id="absolute"),
        pytest.param(f"{HEX}  ../a", "leaves", id="a way out"),
        pytest.param(f"{HEX}  a\\b", "not a plain relative path", id="backslash"),
        pytest.param(f"\\{HEX}  a\\nb", "not a plain relative path", id="newline in a name"),
        pytest.param(f"\\{HEX}  a\\x", "is no escape", id="unknown escape"),
        pytest.param(f"{HEX}  a\n{'0' * 64}  a\n", ":2: a second digest of 'a'", id="two"),
        pytest.param(f"  {HEX}  a", "not a line", id="indented"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_an_error(text: str, message: str) -> None:
    with pytest.raises(IntegrityError, match=message):
        read_checksums(text.encode(), at="SHA256SUMS")


@pytest.mark.parametrize("data", [b"\xff\xfea", b"\x80\x81", bytes(LIMIT + 1)])
def test_what_is_no_text_is_an_error(data: bytes) -> None:
    with pytest.raises(IntegrityError, match="SHA256SUMS: "):
        read_checksums(data, at="SHA256SUMS")


def test_as_much_as_the_limit_is_read() -> None:
    with pytest.raises(IntegrityError, match="no checksums in it"):
        read_checksums(b"#" * LIMIT, at="SHA256SUMS")


def test_files_are_written_by_path_and_without_a_digest_not_at_all() -> None:
    pin = pin_of({"a": b"1", "b": b"2", "c": b"3"})
    a, b, c = pin.files
    text = checksums(replace(pin, files=(c, replace(b, digest=None), a)))
    assert text == f"{Digest.of(b'1').hex}  a\n{Digest.of(b'3').hex}  c\n"


def test_what_differs_is_counted_and_the_first_is_named() -> None:
    pin = pin_of({f"{number:02}": b"%d" % number for number in range(20)})
    unknown = replace(pin.files[0], digest=None)
    pin = replace(pin, files=(unknown, *pin.files[1:]))
    published = {file.path: Digest.of(b"other") for file in pin.files}
    with pytest.raises(IntegrityError, match=r"^S: 19 of 19 files .* the first is '01': expected"):
        compare(pin, published, at="S")
    right = {file.path: file.digest or Digest.of(b"other") for file in pin.files}
    assert compare(pin, right, at="S") == 19


def test_what_is_written_is_what_sha256sum_checks(tmp_path: Path) -> None:
    text = checksums(pin_of(FILES))
    assert read_checksums(text.encode(), at="x") == WANTED
    lay(tmp_path, FILES)
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", "--quiet"],
        input=text.encode(),
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0
    names = sorted(FILES, key=str.encode)
    written = subprocess.run(["sha256sum", *names], cwd=tmp_path, check=True, capture_output=True)
    assert written.stdout.decode() == text


def test_the_digest_of_a_directory_is_that_of_gos_dirhash() -> None:
    # golang.org/x/mod/sumdb/dirhash, Hash1: the sha256 of these lines.
    found = directory_digest({"b": Digest.of(b"2"), "a": Digest.of(b"1")})
    text = f"{Digest.of(b'1').hex}  a\n{Digest.of(b'2').hex}  b\n"
    assert found == Digest.of(text.encode())
    assert text == checksums(pin_of({"b": b"2", "a": b"1"}))


@given(st.binary(max_size=200) | st.text(max_size=80).map(lambda text: f"{HEX}  {text}".encode()))
def test_no_bytes_are_a_bug(data: bytes) -> None:
    try:
        found = read_checksums(data, at="x")
    except IntegrityError:
        return
    files = tuple(ModelFile(path=path, digest=digest) for path, digest in found.items())
    pin = replace(pin_of({}), files=files)
    assert read_checksums(checksums(pin).encode(), at="y") == found


def test_a_model_has_one(tmp_path: Path) -> None:
    assert len(checksums(pin_of(tiny()), prefix="tiny/").splitlines()) == 4


def test_a_model_may_have_a_directory_of_its_own_name() -> None:
    """Then its name before a path says nothing of which model is meant."""
    pin = pin_of({"tiny/a.json": b"{}", "b.json": b"[]"}, name="tiny")
    published = Published(at="SUMS", digests={"tiny/a.json": Digest.of(b"{}")})
    assert published.of(pin) is published
    other = pin_of({"a.json": b"{}"}, name="tiny")
    assert published.of(other).digests == {"a.json": Digest.of(b"{}")}


def test_of_several_models_only_what_is_below_its_name_is_of_one() -> None:
    digests = {path: Digest.of(path.encode()) for path in ("tiny/a.json", "other/b.json", "a.json")}
    own = Published(at="SUMS", digests=digests).of(pin_of({"a.json": b"{}"}, name="tiny"))
    assert own.digests == {"a.json": digests["tiny/a.json"]}
