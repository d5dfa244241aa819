"""``trust.yaml``: what is refused, with its place, and what stands for what."""

from base64 import b64encode
from datetime import date
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from builder.errors import ProjectError
from builder.strict_yaml import Writable, write
from builder.trust.codec import KEY_COUNT_LIMIT, SIZE_LIMIT, read_policy
from builder.trust.draft import first, following
from builder.trust.model import KeyState
from tests.trust.keys import NAMES, key_entry, policy_text, public

ADA, BOB = public("ada"), public("bob")
WHOLE = policy_text()
KEYS = "".join(map(key_entry, NAMES))
IMAGE = "  image: {keys: [carol, dan], threshold: 1}\n"


def test_a_policy_is_what_it_says() -> None:
    policy = read_policy(WHOLE.encode())
    assert (policy.version, policy.expires) == (1, date(2027, 12, 31))
    assert [key.public for key in policy.root_keys] == [ADA, BOB]
    assert policy.root.threshold == 2
    assert policy.longest_waiver.days == 366
    assert policy.scopes[0].repositories == ("registry.example/acme/*",)


def test_a_key_is_the_same_as_pem_and_as_a_line_of_openssh() -> None:
    indented = ADA.pem.decode().replace("\n", "\n      ").rstrip(" ")
    entry = f"  ada:\n    public: |\n      {indented}    owner: x\n    state: active\n"
    other = read_policy(policy_text(keys=entry + KEYS[len(key_entry("ada")) :]).encode())
    assert other.keys["ada"].public == ADA


def test_a_key_whose_point_is_compressed_is_the_same_key() -> None:
    """Two encodings of one key would count twice."""
    key: Any = serialization.load_der_public_key(ADA.spki)
    point = key.public_bytes(
        serialization.Encoding.X962, serialization.PublicFormat.CompressedPoint
    )
    prefix = bytes.fromhex("3039301306072a8648ce3d020106082a8648ce3d030107032200")
    body = b64encode(prefix + point).decode()
    entry = key_entry("bert").replace(
        public("bert").openssh.decode().strip(),
        f'"-----BEGIN PUBLIC KEY-----\\n{body}\\n-----END PUBLIC KEY-----\\n"',
    )
    with pytest.raises(ProjectError, match=r"keys\.bert: the same key as 'ada'"):
        read_policy(policy_text(keys=KEYS + entry).encode())


@pytest.mark.parametrize(
    ("document", "message"),
    [
        pytest.param(
            WHOLE.replace("expires:", "version: 2\nexpires:"),
            "trust.yaml:2:1: duplicate key 'version', first on line 1",
            id="the version twice",
        ),
        pytest.param(
            policy_text(keys=KEYS + key_entry("ada")),
            "trust.yaml:20:3: duplicate key 'ada', first on line 4",
            id="a name twice",
        ),
        pytest.param(
            policy_text(version=0),
            "trust.yaml:1: version: expected a whole number from 1 on, got 0",
            id="version 0",
        ),
        pytest.param(
            policy_text(expires="2027-02-29"),
            "trust.yaml:2: expires: expected a day of the calendar, got '2027-02-29'",
            id="a day that never comes",
        ),
        pytest.param(
            policy_text(keys=KEYS.replace("  bob:", "  bert:").replace(
                BOB.openssh.decode().strip(), ADA.openssh.decode().strip()
            ), root="{keys: [ada, bert], threshold: 2}"),
            f"trust.yaml:8: keys.bert: the same key as 'ada': {ADA.fingerprint}",
            id="one key under two names",
        ),
        pytest.param(
            policy_text(keys=key_entry("ada", f"fingerprint: {BOB.fingerprint}")
                        + KEYS[len(key_entry("ada")) :]),
            f"trust.yaml:7: keys.ada.fingerprint: expected {ADA.fingerprint}, which is that of the"
            f" key, got {BOB.fingerprint!r}",
            id="a fingerprint that lies",
        ),
        pytest.param(
            WHOLE.replace(ADA.openssh.decode().strip(), "ssh-ed25519 AAAA"),
            "trust.yaml:5: keys.ada.public: not a public key: Invalid data",
            id="half a key",
        ),
        pytest.param(
            WHOLE.replace(
                ADA.openssh.decode().strip(), '"-----BEGIN PRIVATE KEY-----"'
            ),
            "trust.yaml:5: keys.ada.public: a private key, where a public one is wanted",
            id="a private key",
        ),
        pytest.param(
            policy_text(root="{keys: [ada, bob], threshold: 0}"),
            "trust.yaml:21: roles.root.threshold: expected a whole number from 1 on, got 0",
            id="a threshold of 0",
        ),
        pytest.param(
            policy_text(root="{keys: [ada, bob], threshold: -1}"),
            "trust.yaml:21: roles.root.threshold: expected a whole number, got the text '-1'",
            id="a threshold below 0",
        ),
        pytest.param(
            policy_text(root="{keys: [ada, bob], threshold: 9007199254740993}"),
            "trust.yaml:21: roles.root.threshold: expected a whole number below 2**53, got"
            " 9007199254740993",
            id="a huge threshold",
        ),
        pytest.param(
            policy_text(root="{keys: [ada, bob], threshold: 3}"),
            "trust.yaml:21: roles.root: threshold 3, and 2 keys that are active: it can never be"
            " met",
            id="a threshold over the number of keys",
        ),
        pytest.param(
            policy_text(root="{keys: [ada, ada], threshold: 2}"),
            "trust.yaml:21: roles.root.keys: 'ada' stands twice",
            id="a key twice in a role",
        ),
        pytest.param(
            policy_text(root="{keys: [], threshold: 1}"),
            "trust.yaml:21: roles.root.keys: expected a list of one or more, got an empty one",
            id="a role of nobody",
        ),
        pytest.param(
            policy_text(root="{keys: [ada, bbo], threshold: 1}"),
            "trust.yaml:21: roles.root.keys[1]: no key 'bbo' in this file",
            id="a key that is not there",
        ),
        pytest.param(
            policy_text(roles="  image: {keys: [carol], threshold: 2}\n"),
            "trust.yaml:22: roles.image: threshold 2, and 1 keys: it can never be met",
            id="a threshold for images over the number of keys",
        ),
        pytest.param(
            policy_text(
                keys=key_entry("ada", state="revoked") + KEYS[len(key_entry("ada")) :]
            ),
            "trust.yaml:21: roles.root: threshold 2, and 1 keys that are active: it can never be"
            " met",
            id="a revoked key in the root",
        ),
        pytest.param(
            policy_text(
                keys=key_entry("ada", "until: 2027-12-31") + KEYS[len(key_entry("ada")) :]
            ),
            "trust.yaml:22: roles.root: key 'ada' has days, and no key of the role 'root' can have"
            " any",
            id="days of a root key",
        ),
        pytest.param(
            policy_text(
                keys=KEYS.replace(
                    "owner: dan\n", "owner: dan\n    since: 2027-02-01\n    until: 2027-01-31\n"
                )
            ),
            "trust.yaml:16: keys.dan: its last day, 2027-01-31, is before its first, 2027-02-01",
            id="days in the wrong order",
        ),
        pytest.param(
            policy_text(
                keys=KEYS[: -len(key_entry("dan"))]
                + key_entry("dan", "until: 2027-01-31", state="retired")
            ),
            "trust.yaml:16: keys.dan: a key that is retired has no days",
            id="days of a retired key",
        ),
        pytest.param(
            policy_text(
                keys=KEYS[: -len(key_entry("dan"))]
                + key_entry("dan", "since: 2027-01-31", state="revoked")
            ),
            "trust.yaml:16: keys.dan: a key that is revoked has no days",
            id="the first day of a revoked key",
        ),
        pytest.param(
            policy_text(
                keys=key_entry("ada", "since: 2027-12-31") + KEYS[len(key_entry("ada")) :]
            ),
            "trust.yaml:22: roles.root: key 'ada' has days, and no key of the role 'root' can have"
            " any",
            id="the first day of a root key",
        ),
        pytest.param(
            policy_text(keys=KEYS + key_entry("eve", "expires: 2027-01-31")),
            "trust.yaml:23: keys.eve: unknown key 'expires'",
            id="what nobody reads of a key",
        ),
        pytest.param(
            policy_text(roles="  image: {keys: [carol, dan], threshold: 1, until: 2027-01-31}\n"),
            "trust.yaml:22: roles.image: unknown key 'until'",
            id="what nobody reads of a role",
        ),
        pytest.param(
            policy_text(
                scopes="  - {repositories: [registry.example/a], role: image, threshold: 2}\n"
            ),
            "trust.yaml:24: scopes[0]: unknown key 'threshold'",
            id="what nobody reads of a scope",
        ),
        pytest.param(
            policy_text(scopes="  - {repositories: [r.example/a, r.example/a], role: image}\n"),
            "trust.yaml:23: scopes: trust.yaml:24: scopes[0]: a repository stands twice",
            id="a repository twice in one scope",
        ),
        pytest.param(
            policy_text(keys="  {}\n"),
            f"trust.yaml:3: keys: expected 1 to {KEY_COUNT_LIMIT} keys, got 0",
            id="no keys",
        ),
        pytest.param(
            WHOLE.replace("  root:", "  roots:"),
            "trust.yaml:20: roles: no role 'root'",
            id="no root",
        ),
        pytest.param(
            policy_text(scopes=""),
            "trust.yaml:23: scopes: expected a list, got nothing",
            id="no scopes",
        ),
        pytest.param(
            policy_text(scopes="  []\n"),
            "trust.yaml:23: scopes: expected a list of one or more, got an empty one",
            id="empty scopes",
        ),
        pytest.param(
            policy_text(scopes="  - {repositories: [], role: image}\n"),
            "trust.yaml:24: scopes[0].repositories: expected a list of one or more, got an empty"
            " one",
            id="a scope of nothing",
        ),
        pytest.param(
            policy_text(scopes="  - {repositories: [registry.example/a], role: root}\n"),
            "trust.yaml:24: scopes[0].role: no role for images 'root' in this file",
            id="the root for images",
        ),
        pytest.param(
            policy_text(
                scopes="  - {repositories: [registry.example/a], role: image}\n"
                "  - {repositories: [registry.example/a], role: image}\n"
            ),
            "trust.yaml:23: scopes: 'registry.example/a' stands twice: trust.yaml:24: scopes[0] and"
            " trust.yaml:25: scopes[1]",
            id="a repository in two scopes",
        ),
        pytest.param(
            policy_text(more="waivers: {days: 367}\n"),
            "trust.yaml:25: waivers: days: expected 1 to 366, got 367",
            id="waivers for ever",
        ),
        pytest.param(
            policy_text(more="grandfathered: [sha256:beef]\n"),
            "trust.yaml:25: grandfathered[0]: sha256 takes 64 hex digits, got 4: 'beef'",
            id="half a digest",
        ),
        pytest.param(
            policy_text(more="tresholds: 3\n"),
            "trust.yaml:25: unknown key 'tresholds'",
            id="a key that nobody reads",
        ),
        pytest.param(
            WHOLE + "#" * SIZE_LIMIT,
            f"trust.yaml:1: {len(WHOLE) + SIZE_LIMIT} bytes, the limit is {SIZE_LIMIT}",
            id="huge",
        ),
        pytest.param(
            policy_text(
                keys="".join(map(key_entry, (f"k{number}" for number in range(65)))),
                root="{keys: [k0], threshold: 1}",
            ),
            f"trust.yaml:3: keys: expected 1 to {KEY_COUNT_LIMIT} keys, got 65",
            id="too many keys",
        ),
    ],
)  # fmt: skip
def test_a_policy_that_cannot_hold_is_refused_with_its_place(document: str, message: str) -> None:
    with pytest.raises(ProjectError) as caught:
        read_policy(document.encode())
    assert caught.value.message == message


def test_a_role_may_have_lost_its_keys_but_for_the_root() -> None:
    """What it signed before may be grandfathered."""
    keys = KEYS.replace("owner: dan\n    state: active", "owner: dan\n    state: revoked")
    roles = IMAGE.replace("threshold: 1", "threshold: 2")
    policy = read_policy(policy_text(keys=keys, roles=roles).encode())
    assert policy.keys["dan"].state is KeyState.REVOKED


def test_what_is_just_within_the_limits_is_a_policy() -> None:
    keys = "".join(map(key_entry, (f"k{number}" for number in range(KEY_COUNT_LIMIT))))
    text = policy_text(
        keys=keys,
        root="{keys: [k0], threshold: 1}",
        roles="  image: {keys: [k1], threshold: 1}\n",
    )
    assert len(read_policy(text.encode()).keys) == KEY_COUNT_LIMIT
    assert read_policy(WHOLE.encode() + b"#" * (SIZE_LIMIT - len(WHOLE))).version == 1


def test_a_key_may_count_from_a_day_on_or_for_one_day() -> None:
    for days in (("since: 2027-02-01",), ("since: 2027-02-01", "until: 2027-02-01")):
        dan = read_policy(policy_text(keys=KEYS[: -len(key_entry("dan"))] + key_entry("dan", *days))
                          .encode()).keys["dan"]  # fmt: skip
        assert dan.in_its_days(date(2027, 2, 1))
        assert not dan.in_its_days(date(2027, 1, 31))
        assert dan.in_its_days(date(2027, 2, 2)) is (len(days) == 1)


def test_a_first_version_and_the_next_one_are_policies() -> None:
    raw = first(
        {"ada": ADA, "bob": BOB},
        expires=date(2027, 12, 31),
        repositories=["registry.example/acme/*"],
        threshold=2,
    )
    assert read_policy(raw).version == 1
    later = following(raw, expires=date(2028, 12, 31))
    policy = read_policy(later)
    assert (policy.version, policy.expires) == (2, date(2028, 12, 31))
    changed = zip(raw.splitlines(), later.splitlines(), strict=True)
    assert [new for old, new in changed if old != new] == [b"version: 2", b'expires: "2028-12-31"']


def test_a_first_version_that_nobody_could_sign_is_refused() -> None:
    with pytest.raises(ProjectError, match="it can never be met"):
        first({"ada": ADA}, expires=date(2027, 1, 1), repositories=["r.example/a"], threshold=2)


def test_what_other_writers_make_of_it_is_the_same_policy() -> None:
    """Quotes and block style are spelling; only bytes are signed."""
    document: dict[str, Writable] = {
        "version": 1,
        "expires": "2027-12-31",
        "keys": {
            name: {"owner": name, "state": "active", "public": public(name).pem.decode()}
            for name in NAMES
        },
        "roles": {
            "root": {"keys": ["ada", "bob"], "threshold": 2},
            "image": {"keys": ["carol", "dan"], "threshold": 1},
        },
        "scopes": [{"repositories": ["registry.example/acme/*"], "role": "image"}],
    }
    assert read_policy(write(document, at="f")) == read_policy(WHOLE.encode())
