"""Nothing that ``key``, ``sign``, ``verify`` and ``trust`` print, log or write has a secret in it,
of what works and of what fails."""

import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Builder, Ran
from tests.cli.signed_world import ME, NAME, World
from tests.services import PASSWORD, running_registry

CANARY = "a-canary-sings"
SECRETS = (CANARY, PASSWORD, b64encode(f"alice:{PASSWORD}".encode()).decode(), "PRIVATE KEY")
DEMANDED = ("--demand", "sbom")


class Listening:
    """Runs commands as loud as they get, and keeps all that they say."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self.said = ""

    def __call__(self, *arguments: str | Path) -> Ran:
        loud = self._builder(*arguments, "-vv", "--json")
        self.said += loud.out + loud.err
        if loud.status == 0:  # what is refused is said in both ways at once
            plain = self._builder(*arguments)
            self.said += plain.out + plain.err
        return loud

    def heard(self) -> list[str]:
        """The secrets that were said."""
        return [secret for secret in SECRETS if secret in self.said]


@pytest.fixture
def run(builder: Builder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Listening]:
    monkeypatch.setenv("BUILDER_KEYS", str(tmp_path / "keys"))
    monkeypatch.setenv("BUILDER_KEY_PASSWORD", CANARY)
    listening = Listening(builder)
    yield listening
    assert listening.said
    assert listening.heard() == []


@pytest.fixture
def image(builder: Builder, tmp_path: Path) -> str:
    directory = tmp_path / "image"
    assert builder("build", NAME, "--out", directory).status == 0
    return f"oci:{directory}"


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A private key in a file, and its public half beside it."""
    (tmp_path / "me.pub").write_bytes(ME.public.pem)
    file = tmp_path / "me.pem"
    file.write_bytes(ME.pem)
    file.chmod(0o600)
    return file


def test_passwords_of_keys(run: Listening, image: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("key", "generate", "mine", "--force").status == 0
    assert run("sign", NAME, image, "--key", "mine").status == 0
    assert run("key", "export", "mine").status == 0
    wrong = f"not {CANARY}"
    monkeypatch.setenv("BUILDER_KEY_PASSWORD", wrong)
    assert run("sign", NAME, image, "--key", "mine").status == 9
    monkeypatch.setenv("BUILDER_KEY_PASSWORD", "")
    monkeypatch.setenv("COSIGN_PASSWORD", CANARY)
    assert run("sign", NAME, image, "--key", "mine").status == 9
    monkeypatch.setenv("BUILDER_KEY_PASSWORD_FILE", f"/does/not/{CANARY[:3]}")
    assert run("sign", NAME, image, "--key", "mine").status == 2
    monkeypatch.delenv("BUILDER_KEY_PASSWORD")
    assert run("sign", NAME, image, "--key", "mine").status == 2


def test_keys_in_variables(run: Listening, image: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that is damaged, and a text that is none: a password in the wrong place, perhaps."""
    whole = ME.pem.decode()
    for text, status in (
        (whole, 0), (whole[:-40], 4), (CANARY, 4), (whole.replace("M", "N", 1), 4),
        (whole * 2, 4),
    ):  # fmt: skip
        monkeypatch.setenv("KEPT", text)
        ran = run("sign", NAME, image, "--key", "env://KEPT", "--allow-plaintext")
        assert ran.status == status, ran.err
    body = whole.splitlines()[1]
    assert body not in run.said
    assert run("sign", NAME, image, "--key", f"awskms://{CANARY}@host/key").status == 2


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (f"false --pin {CANARY}", 9),
        (f"/does/not/exist --pin {CANARY}", 9),
        (f"echo {CANARY}", 4),
        (f"cat '{CANARY}", 2),
        (f"sh -c 'exit 3' {CANARY}", 9),
        (f"yes {CANARY}", 9),
    ],
)
def test_commands_that_sign(
    command: str, status: int, run: Listening, image: str, tmp_path: Path
) -> None:
    """A command line may hold the PIN of a token; and what is printed may be one."""
    public = tmp_path / "me.pub"
    public.write_bytes(ME.public.pem)
    ran = run("sign", NAME, image, "--key", f"exec:{command}", "--public", public)
    assert ran.status == status, ran.err
    assert "exec:" in ran.err


@pytest.mark.requires("docker-registry")
def test_credentials_of_registries(
    run: Listening, plain: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "r").mkdir()
    sign = ("sign", NAME, "--key", plain, "--allow-plaintext")
    public = ("--key", tmp_path / "me.pub")
    config = Path(environment["HOME"], ".docker/config.json")
    config.parent.mkdir()
    with running_registry(tmp_path / "r", password=True) as running:
        target = f"{running.host}/team/hello:t"

        def log_in(password: str) -> None:
            auth = b64encode(f"alice:{password}".encode()).decode()
            config.write_text(json.dumps({"auths": {running.host: {"auth": auth}}}))
            config.chmod(0o600)

        log_in(PASSWORD)
        assert run("build", NAME, "--push", target).status == 0
        assert run(*sign, target).status == 0
        assert run("verify", target, *public).status == 0
        log_in(CANARY)
        assert run("verify", target, *public).status == 14
        assert run(*sign, target).status == 14
        config.write_text("{")
        assert run("verify", target, *public).status != 0
        config.write_text(json.dumps({"auths": {running.host: {"auth": CANARY}}}))
        assert run("verify", target, *public).status != 0
        config.write_text(json.dumps({"auths": {running.host: {"identitytoken": CANARY}}}))
        assert run("verify", target, *public).status != 0


@pytest.mark.parametrize(
    "address",
    [
        f"alice:{CANARY}@registry.example/team/hello:t",
        f"https://alice:{CANARY}@registry.example/team/hello:t",
        f"{CANARY}@registry.example/team/hello",
        f"alice:{CANARY}@registry.example/team/hello@sha256:{'0' * 64}",
        f"alice:{CANARY}@x@registry.example/team/hello:t",
        f"docker://alice:{CANARY}@registry.example/team/hello:t",
    ],
)
def test_credentials_in_a_reference(
    address: str, run: Listening, image: str, plain: Path, tmp_path: Path
) -> None:
    assert image
    for ran in (
        run("verify", address, "--key", tmp_path / "me.pub"),
        run("sign", NAME, address, "--key", plain, "--allow-plaintext"),
        run("build", NAME, "--push", address),
        run("image-verifier", "-name", address, "-digest", f"sha256:{'0' * 64}"),
    ):
        assert ran.status == 2, ran.err + ran.out
    ran = run("verify", address, "--key", tmp_path / "me.pub")
    assert "credentials do not belong in a reference" in ran.err


def test_credentials_of_settings(
    run: Listening, project: Path, plain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    public, place = plain.with_suffix(".pub"), f"alice:{CANARY}@127.0.0.1:9"
    assert run("trust", "new", f"--key=me={public}", f"--repository={place}/a/*").status == 3
    verify = ("verify", "127.0.0.1:9/team/hello:t", "--key", public)
    for settings in (f"location: {place}", f"mirrors: [{place}]", f"location: https://{place}"):
        (project / "builder.yaml").write_text(
            f"version: 1\nregistries:\n  127.0.0.1:9:\n    {settings}\n"
        )
        assert run(*verify).status == 3
    (project / "builder.yaml").unlink()
    monkeypatch.setenv("BUILDER_MIRRORS", f"127.0.0.1:9={place}")
    assert run(*verify).status in {2, 3}


def test_what_is_written_has_none(
    run: Listening, image: str, project: Path, tmp_path: Path, world: World
) -> None:
    """Statements, signatures, policies, exports, and the files of keys."""
    assert run("key", "generate", "mine", "--force").status == 0
    assert run("sign", NAME, image, "--key", "mine").status == 0
    assert run("trust", "new", "--key", "mine", "--repository", "*").status in {0, 2}
    assert run("trust", "sign", "--key", "mine").status == 0
    assert run("trust", "init", "--accept-first").status in {0, 2}
    assert run("trust", "show").status == 0
    assert run("verify", image).status == 0
    for form in ("containers", "kyverno", "cosign", "containerd"):
        run("trust", "export", f"--format={form}", f"--out={tmp_path / form}")
    assert (tmp_path / "cosign").exists()
    places = (project, tmp_path / "image", tmp_path / "keys", tmp_path / "home", tmp_path / "store")
    files = [file for place in places for file in place.rglob("*") if file.is_file()]
    assert len(files) > 20
    found = [
        (file.name, secret)
        for file in files
        for secret in SECRETS[:3]
        if secret.encode() in file.read_bytes()
    ]
    assert found == []
