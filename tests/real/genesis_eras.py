"""Commits of every era of Genesis on one tree: each is baked by its own program, or says why not.

vLLM 0.20.2 is what most of them were made for, give or take a release; the flags are those of the
main recipe, of which later commits know fewer.
"""

import json
import shutil
from dataclasses import dataclass

from tests.claims import Claims
from tests.commands import CommandError
from tests.real.trial import PIN, TRIAL, Trial

_REPOSITORY = "https://github.com/Sandermage/genesis-vllm-patches"
_V7, _V8 = "vllm/_genesis", "vllm/sndr_core"
_RULES = (
    *("allowlist", "unknown-flag", "odd-value", "no-effect", "conflict", "unmet-requirement"),
    *("retired", "superseded", "version-range", "no-list"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A commit with its trees, and what comes of it: the end of the line in the table of a build,
    or a part of the refusal."""

    release: str
    commit: str
    tree: str
    payload: tuple[str, str]
    plugin: tuple[str, str] | None = None
    comes_to: str
    refused: bool = False


COMMITS = (
    Commit(
        release="v7.51",
        commit="a8c202d83ab8726f97c8d5afc16cc7a1166ba500",
        tree="ffde1bb3353300aef0794062a2420bafcf4c135c",
        payload=(_V7, "816ef52fc3e970bcf6aa7833d9e94d8cf27e8849"),
        plugin=("genesis_vllm_plugin", "44c34d2571c833a645eb3543844fe1b0de0922c7"),
        comes_to="18 files, 31 markers",
    ),
    Commit(
        release="v7.54",
        commit="bf667c727634a8a78cd3238803ea76194a5aece6",
        tree="54f1ab0fee3f2486b71684d83a1bbd69c26b71cd",
        payload=(_V7, "0b101ad1b005028e9e74cb25315b9449ba0a5ed7"),
        plugin=("genesis_vllm_plugin", "44c34d2571c833a645eb3543844fe1b0de0922c7"),
        comes_to="19 files, 32 markers",
    ),
    Commit(
        release="v7.69",
        commit="2db18df4bc3abd4eb58a9b2e0342082fa7012c64",
        tree="2d0740490a7cb878bd12961298994226d31a7267",
        payload=(_V7, "ef3b242d6a58388193e5c8b2759a4da2dd0b1d8e"),
        plugin=("genesis_vllm_plugin", "4b5a74d9f53de078ddbd14f69f582f176db33ec9"),
        comes_to="37 files, 57 markers",
    ),
    Commit(
        release="v7.72.5, in no branch",
        commit="fbecee31fd42fa7de9c2e2e8d780a28c01f46abb",
        tree="d4436b4301d1519c86d577294735ea75ea3be09c",
        payload=(_V7, "01fdc6837de6cc25dd98615907daf6a62dcd265a"),
        plugin=("tools/genesis_vllm_plugin", "5b562e8eba0ea27bc0f044df90766f754b971b53"),
        comes_to="37 files, 60 markers",
    ),
    Commit(
        release="v8",
        commit="4d0c399e2407caa3ee1b21cfb8cfbbb84a6f4616",
        tree="abf452070cb6345b9f7956ccf3548e5138be940b",
        payload=(_V8, "85099fa754be2ea75ccd5e4094ecfeaaacd7df75"),
        comes_to="37 files, 59 markers",
    ),
    Commit(
        release="v11",
        commit="f0e86556f1bc8269b1a188430d638d2873f5126a",
        tree="c68ed0c1d861d92be1660713d9dc038b26326c17",
        payload=(_V8, "fa80888fb666081e0bf52f5102b0ac1322a1e17f"),
        comes_to="37 files, 56 markers",
    ),
    Commit(
        release="v12.0.0, made for later releases",
        commit="7aa66f9ac6bc22b8e0d71cff75bf26ebbbd5ae97",
        tree="75e08f5d4fd6ab63ef402b8e1926d0c9ae9cda34",
        payload=("sndr", "e25d8c749bec9f751bdf5f63f663a5eb3841ca10"),
        comes_to="PN351",
        refused=True,
    ),
)


def eras(trial: Trial, claims: Claims) -> None:
    """Bake each commit in place of the trial's own."""
    shutil.rmtree(trial.root / "lockfiles" / "images")  # of another commit
    levels = dict.fromkeys(_RULES, "warning")
    _write(trial, "builder.yaml", {"version": 1, "policy": {"genesis": levels}})
    for commit in COMMITS:
        _write(trial, "lockfiles/genesis.yaml", {"version": 1, "genesis": {PIN: _pin(commit)}})
        claim = f"Genesis {commit.release} ({commit.commit[:8]})"
        try:
            said = trial.builder.run("build", TRIAL).text
        except CommandError as error:
            wanted = commit.refused and error.status == 6 and commit.comes_to in str(error)
            claims.holds(f"{claim}: refused, for {commit.comes_to}", wanted, error.said)
        else:
            claims.holds(f"{claim}: {commit.comes_to}", commit.comes_to in said)


def _pin(commit: Commit) -> dict[str, object]:
    def tree(place: tuple[str, str]) -> dict[str, str]:
        return {"path": place[0], "tree": place[1]}

    return {
        "follows": {"repository": _REPOSITORY},
        "commit": commit.commit,
        "tree": commit.tree,
        "payload": tree(commit.payload),
        **({} if commit.plugin is None else {"plugin": tree(commit.plugin)}),
    }


def _write(trial: Trial, file: str, document: object) -> None:
    (trial.root / file).write_text(json.dumps(document, indent=1))
