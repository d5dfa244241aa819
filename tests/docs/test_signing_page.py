"""docs/signing.md: what it prints, and the command that signs."""

import re
from pathlib import Path

import pytest

from builder.adapters.keys.command import CommandSigner
from tests.docs.conftest import Compare
from tests.docs.pages import ROOT, Terminal, copy_project
from tests.keys.samples import P256

PAGE = ROOT / "docs" / "signing.md"


@pytest.mark.golden
def test_the_commands_print_what_the_page_shows(tmp_path: Path, compare: Compare) -> None:
    terminal = Terminal(directory=copy_project(tmp_path / "here"), home=tmp_path / "home")
    compare(PAGE, terminal.replay(PAGE.read_text(encoding="utf-8")))


@pytest.mark.requires("openssl")
def test_the_command_that_the_page_shows_signs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (script,) = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    name = script.splitlines()[1].removeprefix("# exec:")
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(script)
    Path(name).chmod(0o755)
    Path("kept.pem").write_bytes(P256.plaintext_pem())
    signature = CommandSigner(name, public=P256.public).sign(b"the message")
    assert P256.public.verifies(signature, b"the message")
