"""Signatures of a real model between builder and OpenSSF's model_signing: each verifies what the
other signed, and neither takes what was changed.

The package is no dependency of this project: pip puts it, with hashes, into an environment of its
own among the downloads that are kept (13 s and 51 MB).
"""

import json
from base64 import b64decode
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from builder import canonical
from builder.errors import EnvironmentFault, GoneError, NetworkError
from builder.lock.codec import write_pins
from builder.lock.model import ModelPin
from tests.claims import Claims
from tests.commands import ROOT, Builder, CommandError, clean_environment, run
from tests.models.signing import IGNORED, altered, model_signature
from tests.models.worlds import lay, pin_of
from tests.real.minilm import VARIANT, minilm
from tests.real.pypi_environment import environment_with
from tests.signers import p256

_PACKAGES = Path(__file__).with_suffix(".txt")

_Case: TypeAlias = tuple[str, Path, Path]
"""Its name, the model, and the signature."""
_WRONG = "models: minilm: not what was"
_UNSIGNED = "models: minilm: what is locked is not what was"

_SIGN = """\
import json, sys
from model_signing import hashing, signing
for job in json.load(sys.stdin):
    config = hashing.Config()
    use = getattr(config, f"use_{job['method']}_serialization")
    use(hashing_algorithm=job["algorithm"])
    signer = signing.Config().use_elliptic_key_signer(private_key=job["key"])
    signer.set_hashing_config(config).sign(job["model"], job["signature"])
"""
_VERIFY = """\
import json, sys
from model_signing import verifying
said = []
for job in json.load(sys.stdin):
    try:
        verifier = verifying.Config().use_elliptic_key_verifier(public_key=job["key"])
        verifier.verify(job["model"], job["signature"])
        said.append(None)
    except Exception as error:
        said.append(repr(error))
print(json.dumps(said))
"""


def prove(claims: Claims) -> None:
    """Sign the model with each, verify it with the other, and change one thing at a time."""
    try:
        files = minilm()
        python = environment_with(_PACKAGES)
    except (CommandError, EnvironmentFault, GoneError, NetworkError) as error:
        claims.not_run("signatures of models, with model_signing", f"not here: {error}")
        return
    claim = "signatures of models between builder and model_signing"
    with claims.group(claim), TemporaryDirectory(prefix="builder-model-") as name:
        both = _Meeting(Path(name), files, python)
        both.sign()
        refusals = [*_theirs(both, claims), *_other_models(both, claims)]
        said = both.verify([*refusals, *_ours(both, claims)])
        wanted = {what for what, *_ in refusals}
        claims.equal("model_signing refuses", sorted(said.keys() & wanted), sorted(wanted))
        claims.equal(
            "of what the tests generate it takes what is right",
            sorted(said.keys() - wanted),
            ["a file more", "a stranger's"],
        )


class _Meeting:
    """Both programs, a project that locks the model, and the model."""

    def __init__(self, place: Path, files: dict[str, bytes], python: Path) -> None:
        self.place = place
        self._python = python
        self.files = files
        self.model = lay(place / "minilm", self.files)
        config = self.files["config.json"].replace(b"{", b"[", 1)
        self.other = lay(place / "other", self.files | {"config.json": config})
        for name, signer in (("signer", p256()), ("stranger", p256("b"))):
            (place / f"{name}.pub").write_bytes(signer.public.pem)
            (place / f"{name}.key").write_bytes(signer.pem)
        environment = clean_environment(PYTHONPATH=str(ROOT), HOME=str(place))
        project = place / "project"
        self.builder = Builder(store=place / "store", project=project, environment=environment)
        lay(project, {"variants/mine.yaml": VARIANT})
        pin = pin_of(self.files, name="minilm", repository="Team/MiniLM", include=("*",))
        lay(project, {"lockfiles/models.yaml": write_pins(ModelPin, {"minilm": pin})})

    def sign(self) -> None:
        """Have model_signing sign the model, in three ways, and the other one."""
        usual = {"method": "file", "algorithm": "sha256", "key": str(self.place / "signer.key")}
        jobs = [
            usual | {"model": str(model), "signature": str(self.place / name)} | changes
            for name, model, changes in (
                ("good.sig", self.model, {}),
                ("shards.sig", self.model, {"method": "shard"}),
                ("blake3.sig", self.model, {"algorithm": "blake3"}),
                ("other.sig", self.other, {}),
            )
        ]
        run((self._python, "-c", _SIGN), given=json.dumps(jobs).encode())

    def verify(self, cases: Sequence[_Case]) -> dict[str, str]:
        """What model_signing has against signatures of models, by the name of the case."""
        jobs = [
            {"model": str(model), "signature": str(file), "key": str(self.place / "signer.pub")}
            for _, model, file in cases
        ]
        said = json.loads(run((self._python, "-c", _VERIFY), given=json.dumps(jobs).encode()).text)
        return {name: error for (name, *_), error in zip(cases, said, strict=True) if error}

    def write(self, name: str, raw: bytes) -> Path:
        """A file beside the models."""
        file = self.place / name
        file.write_bytes(raw)
        return file

    def ours(
        self, signature: Path, *, key: str = "signer.pub", model: Path | None = None
    ) -> tuple[int, str]:
        """What ``builder models verify`` says of a signature: its status and its last word."""
        place = model or self.model
        given = ("--dir", place, "--signature", signature, "--key", self.place / key)
        try:
            told = self.builder.run("models", "verify", "mine", *given).text
        except CommandError as error:
            return error.status or 1, error.said
        return 0, told.splitlines()[-1]


def _theirs(both: _Meeting, claims: Claims) -> Iterator[_Case]:
    """What model_signing signed; the cases are those that it must refuse, too."""
    good = both.place / "good.sig"
    document, _ = both.builder.ask(
        *("models", "verify", "mine", "--dir", both.model),
        *("--signature", good, "--key", both.place / "signer.pub"),
    )
    said = document["models"][0]["signatures"][0]
    key = p256().public.fingerprint
    claims.equal("a signature of model_signing is its key's, to us", said["key"], key)
    claims.equal(
        "it is over all that is locked, but what it says that it left out",
        (said["signed"], said["left_out"]),
        (len(both.files) - 1, [".gitattributes"]),
    )
    claims.equal("another key: status", both.ours(good, key="stranger.pub")[0], 11)
    for what in ("shards", "blake3"):
        status, words = both.ours(both.place / f"{what}.sig")
        claims.holds(f"{what}: refused by name", status == 10 and f"{what!r}" in words, words[-60:])
    raw = good.read_bytes()
    payload = b64decode(json.loads(raw)["dsseEnvelope"]["payload"])
    document = json.loads(payload)
    del document["predicate"]["resources"][0]
    for what, other in {
        "a byte of a signature flipped": payload.replace(b'"minilm"', b'"minilM"'),
        "a file taken out of it": canonical.encode(document),
    }.items():
        file = both.write(f"{what}.sig", altered(raw, other))
        claims.equal(f"{what}: status", both.ours(file)[0], 10)
        yield what, both.model, file


def _other_models(both: _Meeting, claims: Claims) -> Iterator[_Case]:
    """A signature of something else, and something else under a signature."""
    good, other = both.place / "good.sig", both.place / "other.sig"
    found = both.ours(good, model=both.other)
    claims.equal("a byte of a model flipped", found, (4, f"{_WRONG} locked"))
    yield "a byte of a model flipped", both.other, good
    found = both.ours(other)
    claims.equal("the signature of another model", found, (4, f"{_UNSIGNED} signed"))
    yield "the signature of another model", both.model, other


def _ours(both: _Meeting, claims: Claims) -> Iterator[_Case]:
    """What the generator of the ordinary tests signed."""
    signed = {path: data for path, data in both.files.items() if path not in IGNORED}
    for what, raw, status in (
        ("all files", model_signature(signed), 0),
        ("a file more", model_signature(signed | {"more": b""}), 0),
        ("a stranger's", model_signature(signed, p256("b")), 11),
    ):
        file = both.write(f"{what}.sig", raw)
        claims.equal(f"generated, {what}: status", both.ours(file)[0], status)
        yield what, both.model, file
