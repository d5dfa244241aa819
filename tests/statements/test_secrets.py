"""What must never be in a statement: secrets of addresses, and places of a machine."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder import canonical
from builder.address import public
from builder.attest.statement import envelope
from builder.build_record import describe
from builder.lock.model import Lock
from builder.statements import statements
from tests.statements.rich import LOCK, build, document, record

CANARY = "canary123"
SECRETS = [
    pytest.param(f"https://{CANARY}@git.example/acme/vllm", id="a user"),
    pytest.param(f"https://me:{CANARY}@git.example/acme/vllm", id="a password"),
    pytest.param(f"https://me:{CANARY}@git.example:8443/acme/vllm", id="a password, and a port"),
    pytest.param(f"https://me:a@{CANARY}@git.example/acme/vllm", id="an at sign in a password"),
    pytest.param(f"https://me:a/{CANARY}@git.example/acme/vllm", id="a slash in a password"),
    pytest.param(f"https://me:1/{CANARY}@git.example/acme/vllm", id="one behind what looks so"),
    pytest.param(f"https://git.example/acme/vllm?token={CANARY}", id="a query"),
    pytest.param(f"https://git.example/acme/vllm#{CANARY}", id="a fragment"),
    pytest.param(f"https://git.example?token={CANARY}", id="a query without a path"),
    pytest.param(f"HTTPS://{CANARY}@GIT.example/acme", id="upper case"),
    pytest.param(f"ssh://{CANARY}@git.example/acme/vllm", id="a user of ssh"),
    pytest.param(f"{CANARY}@git.example:acme/vllm", id="a user before a host and a path"),
    pytest.param(f"me:{CANARY}@git.example/acme/vllm", id="a password without a scheme"),
    pytest.param(f"https:/me:{CANARY}@git.example/acme", id="a slash too few"),
    pytest.param(f"https:me:{CANARY}@git.example/acme", id="two slashes too few"),
    pytest.param(f"https:///{CANARY}@git.example/acme", id="a slash too many"),
    pytest.param(f"https://[::1]:{CANARY}@git.example/acme", id="a bracket"),
    pytest.param(f"https:\\\\me:{CANARY}@git.example\\acme", id="backslashes"),
    pytest.param(f"acme/vllm?token={CANARY}", id="a query of what has no scheme"),
    pytest.param(f"ext::sh%20{CANARY}", id="a command"),
    pytest.param(f"/home/{CANARY}/vllm", id="a path"),
    pytest.param(f"~{CANARY}/vllm", id="a home directory"),
    pytest.param(f"../{CANARY}/vllm", id="a path beside"),
    pytest.param(f"file:///home/{CANARY}/vllm", id="a path as a URL"),
    pytest.param(f"file://localhost/home/{CANARY}/vllm", id="a path on a host"),
    pytest.param(f"FILE:///home/{CANARY}/vllm", id="a path in upper case"),
    pytest.param(f"file:/home/{CANARY}/vllm", id="a path with one slash"),
    pytest.param(f"C:\\Users\\{CANARY}\\vllm", id="a path of another system"),
]


def with_repository(repository: str) -> Lock:
    """The lock in which every repository is this one."""

    def moved(pins: Any) -> dict[str, Any]:
        return {name: dataclasses.replace(pin, repository=repository) for name, pin in pins.items()}

    return dataclasses.replace(
        LOCK,
        pulls=moved(LOCK.pulls),
        sources=moved(LOCK.sources),
        genesis=moved(LOCK.genesis),
        models=moved(LOCK.models),
    )


@pytest.mark.parametrize("repository", SECRETS)
def test_no_secret_of_an_address_gets_into_a_record_or_a_statement(repository: str) -> None:
    made = build(lock=with_repository(repository))
    raw = canonical.encode(describe(made))
    said = [envelope(item).payload for item in statements(record(document(made)), name="x")]
    assert len(said) == 3
    assert all(CANARY.encode() not in item for item in (raw, *said))


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("https://github.com/acme/vllm", "https://github.com/acme/vllm"),
        ("https://github.com/acme/vllm.git", "https://github.com/acme/vllm.git"),
        ("https://me:x@git.example:8443/a/b", "https://git.example:8443/a/b"),
        ("http://[::1]:8080/a", "http://[::1]:8080/a"),
        ("ssh://git@git.example/a", "ssh://git.example/a"),
        ("git@git.example:acme/vllm.git", "ssh://git.example/acme/vllm.git"),
        ("git@git.example:/acme/vllm.git", "ssh://git.example/acme/vllm.git"),
        ("https://git.example", "https://git.example"),
        ("Org/Model-27B.X", "Org/Model-27B.X"),
        ("https://gít.example/ä", "https://gít.example/ä"),
        ("gpt2", "gpt2"),
        ("", None),
        (".", None),
        ("./a/b", None),
        ("a/../b", None),
        ("https://", None),
        ("https://a b/c", None),
    ],
)
def test_an_address_is_told_as_far_as_it_is_public(address: str, told: str | None) -> None:
    assert public(address) == told


@given(st.text(alphabet=st.sampled_from("ab:/@?#.[]\\~%é-1"), max_size=30))
def test_what_is_told_has_no_room_for_a_secret_and_is_told_again_as_it_is(address: str) -> None:
    told = public(address)
    if told is not None:
        assert not set(told) & set("@?#\\")
        assert public(told) == told
