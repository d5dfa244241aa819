"""``builder models verify --signature``, and fetch: what they tell, and their exit statuses."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from builder.digest import ObjectId
from builder.lock.codec import write_pins
from builder.lock.model import ModelPin
from tests.cli.conftest import Builder, Ran
from tests.models.signing import (
    IGNORED,
    model_signature,
    predicate,
    resources,
    root,
    signed,
    statement,
)
from tests.models.worlds import lay, pin_of, tiny
from tests.signers import p256
from tests.standin.hub import StandInHub, stand_in_hub
from tests.trust.keys import NAMES, key_entry, policy_text, signatures, signer

FILES = tiny()
SIZE = sum(map(len, FILES.values()))
KEY = p256().public
IMAGES = "  image: {keys: [ada], threshold: 1}\n"
TABLE = (
    "MODEL  SIZE   OK  MISSING  EXTRA  SHORT  WRONG  UNHASHED\n"
    f"tiny   {SIZE} B  4   0        0      0      0      0\n"
)


@pytest.fixture
def weights(project: Path, tmp_path: Path) -> Path:
    """A project whose variant ``hello`` has a model, the model, and the key of its signer."""
    (project / "lockfiles/models.yaml").write_bytes(write_pins(ModelPin, {"tiny": pin_of(FILES)}))
    with (project / "variants/hello.yaml").open("a") as variant:
        variant.write("models: [tiny]\n")
    (project / "signer.pub").write_bytes(KEY.pem)
    return lay(tmp_path / "weights", FILES)


@pytest.fixture
def verify(builder: Builder, weights: Path) -> Builder:
    def call(*arguments: str | Path) -> Ran:
        return builder("models", "verify", "hello", "--dir", weights, *arguments)

    return call


def test_a_model_that_is_signed_as_it_is_locked(verify: Builder, project: Path) -> None:
    (project / "model.sig").write_bytes(model_signature(FILES | {"README.md": b""}))
    ran = verify("--signature", "model.sig", "--key", "signer.pub")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == (
        f"{TABLE}tiny: 4 of 4 locked files are signed by {KEY.fingerprint}\n"
        "tiny: 1 signed and not locked: README.md\n"
    )


def test_a_key_may_be_named_as_builder_key_knows_it(
    verify: Builder, builder: Builder, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUILDER_KEYS", "keys")
    monkeypatch.setenv("BUILDER_KEY_PASSWORD", "of-no-worth")
    (project / "signer.pem").write_bytes(p256().pem)
    assert builder("key", "import", "maker", "signer.pem").status == 0
    (project / "model.sig").write_bytes(model_signature(FILES))
    ran = verify("--signature", "model.sig", "--key", "maker")
    assert (ran.status, ran.err) == (0, "")


def test_the_document_has_it_and_nothing_is_read_for_it(verify: Builder, project: Path) -> None:
    (project / "model.sig").write_bytes(model_signature(FILES))
    (project / "signer.pub").write_bytes(KEY.openssh)
    ran = verify("--signature", "tiny=model.sig", "--key", "signer.pub", "--json")
    (model,) = ran.json["models"]
    assert (ran.status, model["hashed_bytes"]) == (0, SIZE)
    assert model["signatures"] == [
        {
            "file": "model.sig",
            "key": KEY.fingerprint,
            "name": "tiny",
            "sha256": root(resources(FILES)),
            "signed": 4,
            "findings": [],
            "not_locked": [],
            "left_out": [],
        }
    ]


def test_its_own_file_beside_the_weights_is_nothing_extra(verify: Builder, weights: Path) -> None:
    (weights / "model.sig").write_bytes(model_signature(FILES))
    (weights / "other.sig").write_bytes(model_signature(FILES))
    ran = verify("--signature", weights / "model.sig", "--key", "signer.pub")
    assert ran.status == 4
    assert "tiny: other.sig: extra\n" in ran.out
    assert "model.sig: extra" not in ran.out
    (weights / "other.sig").unlink()
    assert verify("--signature", weights / "model.sig", "--key", "signer.pub").status == 0
    assert verify().status == 4
    (weights / "circle").symlink_to("circle")
    ran = verify("--signature", weights / "model.sig", "--key", "signer.pub")
    assert (ran.status, "tiny: circle: extra\n" in ran.out) == (4, True)


def test_what_is_signed_as_something_else_fails(verify: Builder, project: Path) -> None:
    changed = dict.fromkeys(FILES, b"other")
    (project / "model.sig").write_bytes(model_signature(changed))
    ran = verify("--signature", "model.sig", "--key", "signer.pub")
    assert ran.status == 4
    assert ran.out.startswith(f"{TABLE}tiny: config.json: signed as sha256:")
    assert ran.out.endswith(f"tiny: 0 of 4 locked files are signed by {KEY.fingerprint}\n")
    assert ran.err == (
        "builder: error: models: tiny: what is locked is not what was signed\n"
        "  hint: another revision, or another model? ask whoever signed it which files are meant\n"
    )
    document = verify("--signature", "model.sig", "--key", "signer.pub", "--json").json
    assert len(document["models"][0]["signatures"][0]["findings"]) == 4


def test_a_signature_does_not_make_wrong_bytes_right(
    verify: Builder, project: Path, weights: Path
) -> None:
    (project / "model.sig").write_bytes(model_signature(FILES | {"config.json": b"[]\n"}))
    (weights / "config.json").write_bytes(b"[]\n")
    ran = verify("--signature", "model.sig", "--key", "signer.pub")
    assert ran.status == 4
    assert "tiny: config.json: wrong" in ran.out
    assert ran.err.startswith("builder: error: models: tiny: not what was locked\n")


@pytest.mark.parametrize(
    ("damage", "status", "said"),
    [
        pytest.param(lambda raw: raw[:-2], 10, "model.sig: not JSON", id="cut"),
        pytest.param(
            lambda raw: raw.replace(b'"payload":"e', b'"payload":"f'),
            10,
            f"model.sig: not a signature of {KEY.fingerprint}, which it names",
            id="a byte",
        ),
        pytest.param(
            lambda raw: model_signature(FILES, p256("b")),
            11,
            f"model.sig: signed by none of {KEY.fingerprint}",
            id="a stranger",
        ),
    ],
)
def test_a_signature_that_is_none_is_told_before_anything_is_read(
    verify: Builder, project: Path, damage: object, status: int, said: str
) -> None:
    raw = model_signature(FILES)
    assert callable(damage)
    (project / "model.sig").write_bytes(damage(raw))
    ran = verify("--signature", "model.sig", "--key", "signer.pub")
    assert (ran.status, ran.out) == (status, "")
    assert ran.err.startswith(f"builder: error: {said}")


def test_options_that_make_no_sense_are_a_matter_of_usage(verify: Builder, project: Path) -> None:
    (project / "model.sig").write_bytes(model_signature(FILES))
    for arguments, said in (
        (("--signature", "model.sig"), "no key is trusted: the project has no trust.yaml"),
        (("--key", "signer.pub"), "--key is for --signature"),
        (("--signature", "none", "--key", "signer.pub"), "--signature none: cannot be read"),
        (("--signature", ".", "--key", "signer.pub"), "--signature .: cannot be read"),
        (("--signature", "model.sig", "--key", "none"), "there is no file 'none', and no key"),
        (("--signature", "model.sig", "--key", ""), "there is no file '', and no key"),
    ):
        ran = verify(*arguments)
        assert (ran.status, ran.out) == (2, "")
        assert said in ran.err
    assert verify("--signature", "model.sig", "--key", "model.sig").status == 4


def test_two_may_sign_one_model_and_both_over_the_same_files(
    verify: Builder, project: Path
) -> None:
    (project / "a.sig").write_bytes(model_signature(FILES))
    (project / "b.sig").write_bytes(model_signature(FILES, p256("b")))
    (project / "b.pub").write_bytes(p256("b").public.pem)
    both = ("--signature", "a.sig", "--signature", "b.sig", "--key", "signer.pub", "--key", "b.pub")
    ran = verify(*both)
    assert ran.status == 0
    assert ran.out.endswith(f"signed by {KEY.fingerprint} and {p256('b').public.fingerprint}\n")
    (project / "b.sig").write_bytes(model_signature(FILES | {"x": b""}, p256("b")))
    ran = verify(*both)
    assert (ran.status, ran.out) == (10, "")
    assert ran.err.startswith("builder: error: b.sig: over other files of tiny than a.sig\n")


def test_what_one_of_two_signers_left_out_and_the_other_did_not_is_a_finding(
    verify: Builder, project: Path, weights: Path
) -> None:
    files = FILES | {".gitattributes": b""}
    (project / "lockfiles/models.yaml").write_bytes(write_pins(ModelPin, {"tiny": pin_of(files)}))
    lay(weights, files)
    said = predicate(FILES, serialization={"method": "files"})
    (project / "a.sig").write_bytes(model_signature(FILES))
    (project / "b.sig").write_bytes(signed(statement(FILES, predicate=said)))
    ran = verify("--signature", "a.sig", "--signature", "b.sig", "--key", "signer.pub")
    assert ran.status == 4
    assert ran.out.endswith(
        "tiny: .gitattributes: locked and not signed\n"
        f"tiny: 4 of 5 locked files are signed by {KEY.fingerprint}\n"
        "tiny: 1 left out by the signer: .gitattributes\n"
    )


@pytest.fixture
def policy(builder: Builder, project: Path) -> Callable[..., None]:
    """A trust policy whose models two of Ada, Bob and Carol have to sign, accepted here."""

    def call(**given: str) -> None:
        roles = f"{IMAGES}  model: {{keys: [ada, bob, carol], threshold: 2}}\n"
        text = policy_text(expires="2999-12-31", **{"roles": roles} | given)  # type: ignore[arg-type]  # texts all
        (project / "trust.yaml").write_text(text)
        beside = signatures(text.encode(), "ada", "bob")
        (project / "trust.yaml.sig.jsonl").write_bytes(beside or b"")
        assert builder("trust", "init", "--accept-first").status == 0

    return call


def _signed_by(project: Path, *names: str) -> list[str]:
    """The options for signatures by these."""
    options = []
    for number, name in enumerate(names):
        file = f"{number}-{name}.sig"
        (project / file).write_bytes(model_signature(FILES, signer(name)))
        options += ["--signature", file]
    return options


def test_without_a_key_the_trust_policy_says_who_signs_models(
    verify: Builder, project: Path, policy: Callable[..., None]
) -> None:
    policy()
    ran = verify(*_signed_by(project, "ada", "carol"))
    assert (ran.status, ran.err) == (0, "")
    ran = verify(*_signed_by(project, "ada", "ada"))
    assert (ran.status, ran.out) == (11, "")
    assert ran.err.startswith(
        "builder: error: model tiny: below-threshold: signed by 1 of 2 keys of the role 'model'"
        " ('ada')\n"
    )
    assert verify(*_signed_by(project, "ada", "dan")).status == 11
    stranger = project / "stranger.sig"
    stranger.write_bytes(model_signature(FILES))
    assert verify("--signature", stranger).status == 11


def test_a_key_that_is_revoked_signs_nothing(
    verify: Builder, project: Path, policy: Callable[..., None]
) -> None:
    keys = "".join(
        key_entry(name, state="revoked" if name == "carol" else "active") for name in NAMES
    )
    policy(keys=keys)
    ran = verify(*_signed_by(project, "ada", "carol"))
    assert (ran.status, "'carol' is revoked" in ran.err) == (11, True)


def test_a_policy_that_knows_no_signer_of_models_trusts_none(
    verify: Builder, project: Path, policy: Callable[..., None]
) -> None:
    policy(roles=IMAGES)
    ran = verify(*_signed_by(project, "ada"))
    assert ran.status == 11
    assert ran.err == (
        "builder: error: trust.yaml has no role 'model'\n"
        "  hint: builder trust new begins a version that can have one; --key FILE goes without\n"
    )
    stranger = project / "stranger.sig"
    stranger.write_bytes(model_signature(FILES))
    ran = verify("--signature", stranger)
    assert (ran.status, "trust.yaml has no role 'model'" in ran.err) == (11, True)


def test_of_several_models_it_is_said_which_one_is_signed(
    builder: Builder, project: Path, weights: Path
) -> None:
    other = {"other.json": b"{}\n"}
    pins = {"tiny": pin_of(FILES), "other": pin_of(other, name="other", repository="Team/Other")}
    (project / "lockfiles/models.yaml").write_bytes(write_pins(ModelPin, pins))
    variant = project / "variants/hello.yaml"
    variant.write_text(variant.read_text().replace("[tiny]", "[tiny, other]"))
    lay(weights / "both/tiny", FILES)
    lay(weights / "both/other", other)
    (project / "a=b.sig").write_bytes(model_signature(FILES))
    given = ("models", "verify", "hello", "--dir", weights / "both", "--key", "signer.pub")
    ran = builder(*given, "--signature", "tiny=a=b.sig", "--json")
    assert ran.status == 0
    assert [len(item["signatures"]) for item in ran.json["models"]] == [1, 0]
    ran = builder(*given, "--signature", "a=b.sig")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == (
        "builder: error: --signature a=b.sig: of which model?\n"
        "  hint: write MODEL=FILE; the models are tiny, other\n"
    )


def test_what_the_signer_left_out_is_told(
    builder: Builder, project: Path, weights: Path, verify: Builder
) -> None:
    files = FILES | {IGNORED[2]: b""}
    (project / "lockfiles/models.yaml").write_bytes(write_pins(ModelPin, {"tiny": pin_of(files)}))
    lay(weights, files)
    (project / "model.sig").write_bytes(model_signature(FILES))
    ran = verify("--signature", "model.sig", "--key", "signer.pub")
    assert ran.status == 0
    assert ran.out.endswith(
        f"tiny: 4 of 5 locked files are signed by {KEY.fingerprint}\n"
        "tiny: 1 left out by the signer: .gitattributes\n"
    )


@pytest.fixture
def hub(project: Path, weights: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInHub]:
    """A hub that has the model, which is pinned as it is there."""
    with stand_in_hub() as hub:
        pin = pin_of(FILES, commit=ObjectId(hub.model("Team/Tiny", FILES).refs["main"]))
        (project / "lockfiles/models.yaml").write_bytes(write_pins(ModelPin, {"tiny": pin}))
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        yield hub


@pytest.fixture
def fetch(builder: Builder, hub: StandInHub, tmp_path: Path) -> Builder:
    def call(*arguments: str | Path) -> Ran:
        return builder("models", "fetch", "hello", "--dir", tmp_path / "new", *arguments)

    return call


def test_what_is_fetched_is_held_to_the_signature_too(
    fetch: Builder, project: Path, tmp_path: Path
) -> None:
    (project / "model.sig").write_bytes(model_signature(FILES))
    ran = fetch("--signature", "model.sig", "--key", "signer.pub")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == f"{TABLE}tiny: 4 of 4 locked files are signed by {KEY.fingerprint}\n"
    beside = (project / "model.sig").rename(tmp_path / "new/model.sig")
    ran = fetch("--signature", beside, "--key", "signer.pub", "--json")
    assert ran.status == 0
    assert ran.json["models"][0]["signatures"][0]["signed"] == 4


def test_what_is_signed_as_something_else_is_not_fetched(
    fetch: Builder, project: Path, hub: StandInHub, tmp_path: Path
) -> None:
    (project / "model.sig").write_bytes(model_signature(FILES | {"config.json": b"[]\n"}))
    ran = fetch("--signature", "model.sig", "--key", "signer.pub")
    assert (ran.status, ran.out) == (4, "")
    assert ran.err.startswith(
        "builder: error: models: tiny: what is locked is not what was signed: config.json: signed"
        " as sha256:"
    )
    assert "  hint: another revision, or another model?" in ran.err
    assert (hub.calls, (tmp_path / "new").exists()) == ([], False)


@pytest.mark.parametrize(
    ("options", "status"),
    [
        pytest.param(("--key", "signer.pub"), 2, id="a key without a signature"),
        pytest.param(("--signature", "b.sig"), 2, id="nobody is trusted"),
        pytest.param(("--signature", "b.sig", "--key", "signer.pub"), 11, id="a stranger"),
        pytest.param(("--signature", "cut.sig", "--key", "signer.pub"), 10, id="cut"),
    ],
)
def test_a_signature_that_is_none_lets_nothing_be_fetched(
    fetch: Builder, project: Path, hub: StandInHub, options: tuple[str, ...], status: int
) -> None:
    (project / "b.sig").write_bytes(model_signature(FILES, p256("b")))
    (project / "cut.sig").write_bytes(model_signature(FILES)[:-2])
    ran = fetch(*options)
    assert (ran.status, ran.out, hub.calls) == (status, "", [])
