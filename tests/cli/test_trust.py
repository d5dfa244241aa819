"""``builder trust``: begun, signed, accepted, followed, and refused where it does not follow."""

import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from builder.cli.trust_export import FORMATS
from builder.digest import Digest
from builder.trust.codec import read_policy
from builder.trust.names import SIGNATURES
from tests.cli.conftest import Builder, Ran, tree
from tests.trust import command as signing
from tests.trust.keys import key_entry, policy_text, public, signatures

FILE, BESIDE = "trust.yaml", "trust.yaml.sig.jsonl"


def day(days: int) -> str:
    """So many days from now, in UTC."""
    return str(datetime.now(UTC).date() + timedelta(days=days))


def write(project: Path, *names: str, **given: Any) -> str:
    """A policy that these signed; returns its digest."""
    raw = policy_text(**({"expires": day(200)} | given)).encode()
    (project / FILE).write_bytes(raw)
    (project / BESIDE).write_bytes(signatures(raw, *names) or b"")
    return str(Digest.of(raw))


def refused(ran: Ran, status: int, message: str) -> None:
    assert ran.status == status
    assert ran.err.startswith(f"builder: error: {message}\n  hint: ")


def test_a_policy_is_begun_signed_and_accepted(
    project: Path, builder: Builder, tmp_path: Path
) -> None:
    keys = [f"--key={name}={tmp_path / name}.pub" for name in ("ada", "carol")]
    for name in ("ada", "carol"):
        (tmp_path / f"{name}.pub").write_bytes(public(name).pem)
    made = builder("trust", "new", *keys, "--repository=registry.example/a/*", "--threshold=2")
    assert (made.status, made.out) == (0, f"trust.yaml: version 1, to {day(365)}\n")
    assert read_policy((project / FILE).read_bytes()).keys["carol"].public == public("carol")

    ran = builder("trust", "sign", *signing.options("ada", tmp_path))
    assert ran.out == (
        f"{BESIDE}: version 1 is signed by 1 of 2 root keys: it does not count yet; who has not"
        " signed: 'carol'\n"
    )
    refused(
        builder("trust", "init", "--accept-first"),
        11,
        "trust.yaml: signed by 1 of 2 root keys of its own",
    )
    assert "next: " not in ran.err
    ran = builder("trust", "sign", *signing.options("carol", tmp_path), "--json")
    assert ran.json["signed_by"] == ["ada", "carol"]
    assert builder("trust", "sign", *signing.options("ada", tmp_path)).err == (
        f"next: commit {FILE} and {BESIDE}, then on each machine: builder trust init\n"
    )

    before = tree(project)
    ran = builder("trust", "init")
    assert ran.status == 11
    assert public("ada").fingerprint in ran.out
    assert public("carol").fingerprint in ran.out
    digest = Digest.of((project / FILE).read_bytes())
    assert f"builder trust init --digest {digest}" in ran.err
    assert builder("trust", "show", "--json").json["accepted"] is False
    assert builder("trust", "init", "--digest", str(digest)).status == 0
    assert builder("trust", "show", "--json").json["accepted"] is True
    assert builder("trust", "check").out == "nothing to report\n"
    assert builder("trust", "sign", *signing.options("ada", tmp_path)).err == ""
    assert tree(project) == before


def test_a_policy_is_signed_by_a_key_without_a_password_where_that_is_said(
    project: Path, builder: Builder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refusal names an option, and the command has it."""
    monkeypatch.setenv("BUILDER_KEYS", str(tmp_path / "keys"))
    assert builder("key", "generate", "release", "--allow-plaintext").status == 0
    made = builder("trust", "new", "--key", "release", "--repository", "registry.example/a")
    assert made.status == 0
    ran = builder("trust", "sign", "--key", "release")
    assert (ran.status, "; --allow-plaintext takes it as it is\n" in ran.err) == (5, True)
    assert not (project / BESIDE).exists()
    ran = builder("trust", "sign", "--key", "release", "--allow-plaintext")
    assert (ran.status, ran.out) == (0, f"{BESIDE}: version 1 is signed by 1 of 1 root keys\n")


@pytest.mark.parametrize("form", FORMATS)
def test_an_option_of_another_format_is_told(
    form: str, project: Path, builder: Builder, tmp_path: Path
) -> None:
    write(project, "ada", "bob")
    export = ("trust", "export", "--format", form, "--out", tmp_path / "out")
    if form not in ("containers", "kyverno"):
        ran = builder(*export, "--reject")
        refused(ran, 2, f"--reject is for --format containers and kyverno, got {form}")
        assert f"leave it out: what no scope has is refused by {form} in any case" in ran.err
    if form != "notation":
        ran = builder(*export, "--certificate", project / FILE)
        refused(ran, 2, f"--certificate is for --format notation, got {form}")
    assert not (tmp_path / "out").exists()


def test_a_digest_that_is_another_accepts_nothing(project: Path, builder: Builder) -> None:
    write(project, "ada", "bob")
    ran = builder("trust", "init", "--digest", str(Digest.of(b"another")))
    refused(ran, 11, f"trust.yaml: no version of it has the digest {Digest.of(b'another')}")
    assert builder("trust", "show", "--json").json["accepted"] is False


def test_the_next_version_is_begun_signed_and_followed(
    project: Path, builder: Builder, tmp_path: Path
) -> None:
    write(project, "ada", "bob")
    builder("trust", "init", "--accept-first")
    old = {name: (project / name).read_bytes() for name in (FILE, BESIDE)}
    assert builder("trust", "new").out == f"trust.yaml: version 2, to {day(365)}\n"
    assert (project / "trust/1.yaml").read_bytes() == old[FILE]
    assert (project / "trust/1.yaml.sig.jsonl").read_bytes() == old[BESIDE]
    refused(
        builder("trust", "update"),
        11,
        "trust.yaml: signed by 0 of 2 root keys of version 1, which was accepted before it",
    )
    refused(builder("trust", "new"), 11, "trust.yaml: signed by 0 of 2 root keys of its own")
    for name in ("ada", "bob"):
        assert builder("trust", "sign", *signing.options(name, tmp_path)).status == 0
    ran = builder("trust", "update")
    assert ran.out.startswith("accepted: 2\ntrust.yaml: version 2, sha256:")
    assert builder("trust", "update").out.startswith("nothing new\n")
    for name, data in old.items():
        (project / name).write_bytes(data)
    refused(
        builder("trust", "update"),
        11,
        "trust.yaml: version 1, and version 2 was accepted here",
    )


def test_whoever_was_away_follows_the_versions_that_are_kept(
    project: Path, builder: Builder, environment: dict[str, str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    digest = write(project, "ada", "bob")
    for _ in range(2):
        builder("trust", "new")
        for name in ("ada", "bob"):
            builder("trust", "sign", *signing.options(name, tmp_path))
    refused(builder("trust", "update"), 11,
            "trust.yaml: nobody has accepted this policy on this machine")  # fmt: skip
    monkeypatch.setenv("BUILDER_TRUST", digest)
    ran = builder("trust", "update", "--json")
    assert (ran.json["version"], ran.json["steps"]) == (3, [1, 2, 3])
    monkeypatch.setenv("BUILDER_TRUST", "sha256:beef")
    assert builder("trust", "update").status == 2


def test_a_policy_that_is_removed_is_missed(
    project: Path, builder: Builder, tmp_path: Path
) -> None:
    write(project, "ada", "bob")
    builder("trust", "init", "--accept-first")
    (project / FILE).unlink()
    refused(builder("trust", "update"), 11,
            "trust.yaml: gone, and version 1 of it was accepted here")  # fmt: skip
    key = tmp_path / "ada.pub"
    key.write_bytes(public("ada").pem)
    for words in (("show",), ("check",), ("init",), ("new", f"--key=a={key}", "--repository=*")):
        refused(builder("trust", *words), 11,
                "trust.yaml: gone, and version 1 of it was accepted here")  # fmt: skip
    assert not (project / FILE).exists()
    assert builder("trust", "forget").out == "forgotten\n"
    assert builder("trust", "forget").out == "nothing was accepted here\n"
    refused(builder("trust", "update"), 3, "no trust.yaml here")


def test_what_was_accepted_is_not_accepted_anew(project: Path, builder: Builder) -> None:
    write(project, "ada", "bob")
    builder("trust", "init", "--accept-first")
    write(project, "ada", "bob", version=2, root="{keys: [carol], threshold: 1}")
    refused(builder("trust", "init", "--accept-first"), 2,
            "version 1 of trust.yaml was accepted here before")  # fmt: skip


@pytest.mark.parametrize(("days", "status"), [(-1, 12), (0, 0), (1, 0)])
def test_a_policy_holds_to_the_end_of_its_last_day(
    project: Path, builder: Builder, days: int, status: int
) -> None:
    write(project, "ada", "bob", expires=day(days))
    builder("trust", "init", "--accept-first")
    assert builder("trust", "update").status == status
    assert builder("trust", "check").status == status
    assert builder("trust", "export", "--format=cosign", "--out=out").status == status
    assert (project / "out").exists() is (status == 0)


def test_check_says_what_is_wrong_and_what_ends_soon(project: Path, builder: Builder) -> None:
    roles = "  image: {keys: [carol], threshold: 1}\n  left: {keys: [carol], threshold: 1}\n"
    write(project, "ada", expires=day(10), roles=roles,
          scopes='  - {repositories: ["*"], role: image}\n')  # fmt: skip
    ran = builder("trust", "check", "--json")
    assert ran.status == 11
    said = {item["message"] for item in ran.json["findings"]}
    assert said == {
        "signed by 1 of 2 root keys of its own",
        "nobody has accepted this policy on this machine",
        f"expires with {day(10)}, and nothing is trusted after it",
        "keys.dan: no role has it",
        "roles.left: no scope names it",
        "scopes[0]: '*' is every repository of every registry, for the role 'image'",
    }
    assert f"expires with {day(10)}" not in builder("trust", "check", "--days=9").out
    ran = builder("check", "--json")
    assert "signed by 1 of 2 root keys of its own" in {
        item["message"] for item in ran.json["findings"]
    }


def test_a_policy_that_is_none_is_a_finding_with_its_line(project: Path, builder: Builder) -> None:
    write(project, "ada", "bob", root="{keys: [ada, bob], threshold: 0}")
    for words in (("check",), ("trust", "check")):
        ran = builder(*words, "--json")
        (finding,) = {item["message"]: item for item in ran.json["findings"]
                      if item["where"].startswith("trust.yaml:")}.values()  # fmt: skip
        assert finding["where"] == "trust.yaml:21"
        assert ran.status in {3, 11}


def test_a_key_that_does_not_count_does_not_sign(
    project: Path, builder: Builder, tmp_path: Path
) -> None:
    write(project, "ada", "bob")
    before = (project / BESIDE).read_bytes()
    refused(
        builder("trust", "sign", *signing.options("carol", tmp_path)),
        2,
        f"--key: {public('carol').fingerprint} is no key of the role 'root' in trust.yaml",
    )
    assert (project / BESIDE).read_bytes() == before


def test_a_key_of_the_version_before_signs_the_next_one(
    project: Path, builder: Builder, tmp_path: Path
) -> None:
    """Also where the next one has it no more: both roots have to sign."""
    write(project, "ada", "bob")
    builder("trust", "init", "--accept-first")
    builder("trust", "new")
    text = (project / FILE).read_text().replace("[ada, bob], threshold: 2", "[dan], threshold: 1")
    (project / FILE).write_text(text)
    ran = builder("trust", "sign", *signing.options("dan", tmp_path))
    assert ran.out == (
        f"{BESIDE}: version 2 is signed by 1 of 1 root keys\nit is signed by 0 of 2 root keys of"
        " version 1: it does not count yet; who has not signed: 'ada', 'bob'\n"
    )
    for name in ("ada", "bob"):
        ran = builder("trust", "sign", *signing.options(name, tmp_path), "--json")
    assert ran.json["before"] == {"version": 1, "signed_by": ["ada", "bob"], "threshold": 2}
    assert builder("trust", "update").status == 0


@pytest.mark.parametrize("form", [form for form in FORMATS if form != "notation"])
def test_an_export_is_written_where_nothing_is(project: Path, builder: Builder, form: str) -> None:
    write(project, "ada", "bob")
    refused(builder("trust", "export", f"--format={form}", "--out=out"), 11,
            "trust.yaml: nobody has accepted this policy on this machine")  # fmt: skip
    assert not (project / "out").exists()
    builder("trust", "init", "--accept-first")
    ran = builder("trust", "export", f"--format={form}", "--out=out", "--json")
    assert ran.status == 0
    assert set(ran.json["files"]) == {name for name, data in tree(project / "out").items() if data}
    assert ran.json["remarks"]
    before = tree(project)
    assert builder("trust", "export", f"--format={form}", "--out=out").status == 2
    assert tree(project) == before


def test_new_says_what_it_lacks(project: Path, builder: Builder, tmp_path: Path) -> None:
    (tmp_path / "ada.pub").write_bytes(public("ada").pem)
    key = f"--key=ada={tmp_path / 'ada.pub'}"
    refused(builder("trust", "new"), 2, "missing option '--key'")
    refused(builder("trust", "new", key), 2, "missing option '--repository'")
    refused(builder("trust", "new", key, key, "--repository=r.example/a"), 2,
            "--key: 'ada' is given twice")  # fmt: skip
    assert not (project / FILE).exists()
    (project / "builder.yaml").write_text("version: 1\npublish: registry.example/acme/vllm\n")
    assert builder("trust", "new", key).status == 0
    made = yaml.safe_load((project / FILE).read_text())
    assert made["scopes"][0]["repositories"] == ["registry.example/acme/vllm"]
    refused(
        builder("trust", "new", key),
        2,
        "there is a trust.yaml: --key, --repository and --threshold are for version 1",
    )


def test_a_key_that_is_revoked_here_begins_no_policy(
    project: Path, builder: Builder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUILDER_KEYS", str(tmp_path / "keys"))
    monkeypatch.setenv("BUILDER_KEY_PASSWORD", "of no worth")
    assert builder("key", "generate", "mine").status == 0
    assert builder("key", "revoke", "mine").status == 0
    ran = builder("trust", "new", "--key=mine", "--repository=registry.example/a")
    refused(ran, 5, "key 'mine' is revoked")
    assert not (project / FILE).exists()


def test_many_who_sign_at_once_all_have_signed(
    project: Path, command: Builder, tmp_path: Path
) -> None:
    names = ["ada", "bob", "carol", "dan", "eve", "frank"]
    write(
        project,
        keys="".join(map(key_entry, names)),
        root=f"{{keys: [{', '.join(names)}], threshold: 6}}",
    )
    given = {name: signing.options(name, tmp_path) for name in names}
    with ThreadPoolExecutor(len(names)) as pool:
        ran = [pool.submit(command, "trust", "sign", *given[name]) for name in names]
        assert [item.result().status for item in ran] == [0] * len(names)
    assert command("trust", "show", "--json").json["signed_by"] == names


def test_of_many_who_begin_the_next_version_one_has_begun_it(
    project: Path, command: Builder
) -> None:
    write(project, "ada", "bob")
    signed = (project / BESIDE).read_bytes()
    with ThreadPoolExecutor(6) as pool:
        ran = [pool.submit(command, "trust", "new", f"--days={days}") for days in range(1, 7)]
        (begun,) = [item.result() for item in ran if item.result().status == 0]
    expires = begun.out.split()[-1]
    assert str(read_policy((project / FILE).read_bytes()).expires) == expires
    assert (project / f"trust/1.yaml{SIGNATURES}").read_bytes() == signed


def test_a_policy_that_changes_while_it_is_signed_keeps_the_signatures_that_it_has(
    project: Path, builder: Builder, tmp_path: Path
) -> None:
    """Whoever takes long to type a password must not take away what others signed meanwhile."""
    write(project, "ada")
    slow = tmp_path / "slow.py"
    _, key, *public_option = signing.options("bob", tmp_path)
    other = policy_text(expires=day(100)).encode()
    slow.write_text(
        "import pathlib, subprocess, sys\n"
        f"pathlib.Path('trust.yaml').write_bytes({other!r})\n"
        f"sys.exit(subprocess.call({key.removeprefix('exec:').split()!r}))\n"
    )
    ran = builder("trust", "sign", "--key", f"exec:{sys.executable} {slow}", *public_option)
    refused(ran, 2, "trust.yaml: changed while it was signed")
    assert (project / BESIDE).read_bytes().count(b"\n") == 1


def test_a_machine_that_remembers_nothing_goes_by_the_digest_it_is_given(
    project: Path, builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = write(project, "ada", "bob")
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/nobody-writes-here")
    assert builder("trust", "init", "--digest", digest).status == 9
    monkeypatch.setenv("BUILDER_TRUST", digest)
    ran = builder("trust", "update")
    assert ran.status == 0
    assert "trust.yaml: not remembered: " in ran.err


@pytest.mark.parametrize(
    ("data", "status", "message"),
    [
        pytest.param(b"", 3, "trust.yaml:1:1: an empty document", id="empty"),
        pytest.param(b"\0" * 70_000, 3, "trust.yaml:1:1: character U+0000", id="no text"),
        pytest.param(b"#" * 5_000_000, 3, "trust.yaml: more than 4194304 bytes", id="huge"),
        pytest.param(b"a: &a [*a]\n", 3, "trust.yaml:1:4: anchor", id="an anchor"),
    ],
)
def test_a_file_that_is_no_policy_is_refused_by_every_command(
    project: Path, builder: Builder, data: bytes, status: int, message: str
) -> None:
    (project / FILE).write_bytes(data)
    for words in (("show",), ("init", "--accept-first"), ("new",)):
        ran = builder("trust", *words)
        assert ran.status == status
        assert ran.err.startswith(f"builder: error: {message}")


def test_line_ends_that_a_checkout_changed_are_said(project: Path, builder: Builder) -> None:
    write(project, "ada", "bob")
    (project / FILE).write_bytes((project / FILE).read_bytes().replace(b"\n", b"\r\n"))
    refused(
        builder("trust", "init", "--accept-first"),
        11,
        "trust.yaml: signed by 0 of 2 root keys of its own; the signatures are of another text: it"
        " was changed after it was signed",
    )


def test_keys_that_sign_nothing_new_are_shown_with_their_state(
    project: Path, builder: Builder
) -> None:
    keys = "".join(
        key_entry(name, state={"dan": "revoked"}.get(name, "active"))
        for name in ("ada", "bob", "carol", "dan")
    )
    write(project, "ada", "bob", keys=keys)
    assert "1 of carol, dan (revoked)\n" in builder("trust", "show").out


def test_a_certificate_is_asked_for_where_one_is_missing_and_nowhere_else(
    project: Path, builder: Builder
) -> None:
    roles = "  image: {keys: [carol, dan], threshold: 2}\n"
    scopes = "  - {repositories: [registry.example/acme/app], role: image}\n"
    write(project, "ada", "bob", roles=roles, scopes=scopes)
    builder("trust", "init", "--accept-first")
    ran = builder("trust", "export", "--format=notation", "--out=out")
    assert (ran.status, ran.err.splitlines()[1]) == (
        5,
        "  hint: verify with builder verify, which knows all of the policy",
    )


def test_the_program_of_containerd_names_the_builder_that_is_installed(
    project: Path, builder: Builder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project, "ada", "bob")
    builder("trust", "init", "--accept-first")
    program = tmp_path / "some where" / "builder"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    monkeypatch.setattr("sys.argv", [str(program)])
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path / "none"))
    options = ("trust", "export", "--format=containerd", "--out=out")
    refused(builder(*options), 9, f"no program 'builder' in {tmp_path / 'none'}, and containerd has"
            " to start one")  # fmt: skip
    program.chmod(0o755)
    assert builder(*options).status == 0
    assert f"\nexec '{program}' -C " in (project / "out/bin/builder").read_text()
