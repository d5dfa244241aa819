"""A waiver in a project with a trust policy: it counts once the role has signed it."""

from pathlib import Path

import pytest

from tests.flow.images import image
from tests.flow.test_admission import Night, day, installed, night
from tests.trust import command as signing
from tests.trust.keys import policy_text, signatures

pytestmark = pytest.mark.requires("git", "unshare")
__all__ = ["night"]

ROLES = "  image: {keys: [dan], threshold: 1}\n  waiver: {keys: [carol], threshold: 1}\n"
FILE = "lockfiles/waivers.yaml.sig.jsonl"


def trust(night: Night, *, version: int = 1, accept: bool = True, **given: str) -> None:
    root = night.tiny.root
    raw = policy_text(**{"roles": ROLES, "expires": day(200), **given}, version=version).encode()
    (root / "trust.yaml").write_bytes(raw)
    (root / "trust.yaml.sig.jsonl").write_bytes(signatures(raw, "ada", "bob") or b"")
    if accept:
        done = night.run("trust", "init", "--accept-first")
        assert done.status == 0, done.err


def name_of(night: Night) -> str:
    return f"genesis-{night.patches.commit[:12]}-vllm-0.20.2"


def sign(night: Night, tmp_path: Path, key: str = "carol") -> str:
    options = signing.options(key, tmp_path)
    done = night.run("trust", "sign", "--waiver", name_of(night), *options)
    return done.out or done.err


def refusal(night: Night) -> str:
    """Why a build is refused for its waiver."""
    done = night.run("build", "it")
    assert (done.status, done.out) == (5, "")
    before, _, why = done.err.partition(f", and waiver {name_of(night)!r} does not count: ")
    assert before == f"builder: error: {night.message}"
    return why.partition("\n")[0]


def test_a_waiver_counts_once_it_is_signed(night: Night, tmp_path: Path) -> None:
    trust(night)
    night.waive()
    assert refusal(night) == "untrusted: signed by 0 of 1 keys of the role 'waiver'"
    done = night.run("check", "it", "--json")
    assert done.status == 5
    assert sign(night, tmp_path) == f"{FILE}: {name_of(night)}: counts\n"
    assert night.run("build", "it").status == 0
    assert night.run("check", "it").status == 0
    night.waive(day(40))
    assert refusal(night) == "untrusted: signed by 0 of 1 keys of the role 'waiver'"


def test_what_was_answered_before_is_looked_at_again(night: Night, tmp_path: Path) -> None:
    """What a machine accepted is in no file of the project."""
    trust(night)
    night.waive()
    sign(night, tmp_path)
    assert night.run("build", "it").status == 0
    assert night.run("trust", "forget").status == 0
    assert refusal(night) == "trust.yaml: nobody has accepted this policy on this machine"


def test_a_policy_that_does_not_hold_lets_no_waiver_count(night: Night, tmp_path: Path) -> None:
    trust(night)
    night.waive()
    sign(night, tmp_path)
    trust(night, version=2, accept=False, expires=day(-1))
    assert refusal(night).startswith("trust.yaml: version 2 expired on ")
    (night.tiny.root / "trust.yaml").unlink()
    assert refusal(night) == "trust.yaml: gone, and version 2 of it was accepted here"


def test_a_key_of_another_role_signs_no_waiver(night: Night, tmp_path: Path) -> None:
    trust(night)
    night.waive()
    assert "is no key of the role 'waiver'" in sign(night, tmp_path, "dan")
    assert not (night.tiny.root / FILE).exists()


def test_a_damaged_file_of_signatures_lets_no_waiver_count(night: Night, tmp_path: Path) -> None:
    trust(night)
    night.waive()
    sign(night, tmp_path)
    (night.tiny.root / FILE).write_bytes(b"{}\n")
    assert refusal(night).startswith(f"{FILE}:1: not a DSSE envelope")


def test_a_base_that_is_listed_needs_no_policy_to_hold(night: Night) -> None:
    trust(night, accept=False)
    night.on(image(installed("0.20.1")), vllm={"version": "0.20.1"})
    assert night.run("build", "it").status == 0
