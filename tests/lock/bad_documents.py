"""Documents that are wrong in one place: what the codec says, and whether the schema can tell."""

from dataclasses import dataclass

from tests.lock.documents import COMMIT, DIGITS, A, B, C, changed


@dataclass(frozen=True, slots=True, kw_only=True)
class Bad:
    """A wrong document. ``codec_only`` marks rules over several values, which no schema states."""

    id: str
    kind: str
    old: str
    new: str
    message: str
    hint: str | None = None
    codec_only: bool = False

    @property
    def data(self) -> bytes:
        return changed(self.kind, self.old, self.new)


TAG = f"\n      tag: nightly-{COMMIT}"
NO_HINT = None

BAD_LOCKS: tuple[Bad, ...] = (
    Bad(
        id="a digest that is too short",
        kind="vllm",
        old=f"index: {A}",
        new="index: sha256:beefbeef12",
        message="lockfiles/vllm.yaml:7: vllm.known-good.index: sha256 takes 64 hex digits, got 10:"
        " 'beefbeef12'",
    ),
    Bad(
        id="a key with a slip",
        kind="vllm",
        old="        config:",
        new="        confg:",
        message="lockfiles/vllm.yaml:11: vllm.known-good.platforms.linux/amd64: unknown key"
        " 'confg'",
        hint="did you mean 'config'?",
    ),
    Bad(
        id="a key like no other",
        kind="wheels",
        old="    size: 123",
        new="    zzz: 123",
        message="lockfiles/wheels.yaml:9: wheels.xxhash: unknown key 'zzz'",
        hint="the keys here are 'follows', 'filename', 'digest', 'size', 'path', 'escrow',"
        " 'failing', 'locked'",
    ),
    Bad(
        id="a missing key",
        kind="genesis",
        old=f'    tree: "{COMMIT}"\n',
        new="",
        message="lockfiles/genesis.yaml:3: genesis.v7.72.2: missing key 'tree'",
    ),
    Bad(
        id="a missing key that is there with a slip",
        kind="wheels",
        old="    digest:",
        new="    digset:",
        message="lockfiles/wheels.yaml:3: wheels.xxhash: missing key 'digest'",
        hint="'digset' is no key here; is it meant?",
    ),
    Bad(
        id="another version",
        kind="pulls",
        old="version: 1",
        new="version: 2",
        message="lockfiles/pulls.yaml:1: version: version 2 is not supported, wanted 1",
        hint="upgrade builder to read this file",
    ),
    Bad(
        id="a version in quotes",
        kind="pulls",
        old="version: 1",
        new='version: "1"',
        message="lockfiles/pulls.yaml:1: version: expected a whole number, got the text '1'",
    ),
    Bad(
        id="a name with an upper-case letter",
        kind="vllm",
        old="  known-good:",
        new="  Known:",
        message="lockfiles/vllm.yaml:3: vllm.Known: 'Known' is not a name",
        hint="a name has lower-case letters and digits, joined by single '.', '_' or '-', or by"
        " '--'",
    ),
    Bad(
        id="a name that no image layout could give an image",
        kind="vllm",
        old="  known-good:",
        new="  known..good:",
        message="lockfiles/vllm.yaml:3: vllm.known..good: 'known..good' is not a name",
        hint="a name has lower-case letters and digits, joined by single '.', '_' or '-', or by"
        " '--'",
    ),
    Bad(
        id="a name that is too long",
        kind="vllm",
        old="  known-good:",
        new=f"  {'n' * 101}:",
        message=f"lockfiles/vllm.yaml:3: vllm.{'n' * 101}: a name of 101 characters, the limit is"
        " 100",
    ),
    Bad(
        id="a tag inside the image",
        kind="vllm",
        old=f"vllm/vllm-openai{TAG}",
        new="vllm/vllm-openai:nightly",
        message="lockfiles/vllm.yaml:5: vllm.known-good.follows.image: expected an image without"
        " tag and digest, got 'docker.io/vllm/vllm-openai:nightly'",
        hint="write the tag under 'tag', the digest under 'index'",
        codec_only=True,
    ),
    Bad(
        id="a tag with a digest in it",
        kind="vllm",
        old=f"tag: nightly-{COMMIT}",
        new=f"tag: nightly@{A}",
        message=f"lockfiles/vllm.yaml:6: vllm.known-good.follows.tag: 'nightly@{A}' is not a tag",
    ),
    Bad(
        id="a repository in upper case",
        kind="vllm",
        old="docker.io/vllm/",
        new="docker.io/VLLM/",
        message="lockfiles/vllm.yaml:5: vllm.known-good.follows.image:"
        " 'docker.io/VLLM/vllm-openai': 'VLLM/vllm-openai' is not a repository",
        hint="repositories are lower case, with single separators",
        codec_only=True,
    ),
    Bad(
        id="neither index nor platforms",
        kind="vllm",
        old=f"    index: {A}\n    platforms:\n      linux/amd64:\n        manifest: {B}\n"
        f"        config: {C}\n        layers:\n          - digest: {A}\n            size: 12\n"
        f"            diff_id: {B}\n            files: {C}\n          - digest: {C}\n"
        "            size: 0\n"
        f"      linux/arm64/v8:\n        manifest: {C}\n",
        new="",
        message="lockfiles/vllm.yaml:3: vllm.known-good: neither 'index' nor 'platforms', so that"
        " nothing is pinned",
        hint="write the digest of the index, or of a manifest for each platform",
    ),
    Bad(
        id="a platform of one word",
        kind="vllm",
        old="linux/arm64/v8:",
        new="linux:",
        message="lockfiles/vllm.yaml:19: vllm.known-good.platforms.linux: expected"
        " os/architecture, got 'linux'",
        hint="for example linux/amd64",
    ),
    Bad(
        id="a size in hexadecimal",
        kind="vllm",
        old="size: 12",
        new="size: 0x12",
        message="lockfiles/vllm.yaml:14: vllm.known-good.platforms.linux/amd64.layers[0].size:"
        " expected a whole number, got the text '0x12'",
    ),
    Bad(
        id="a size with a leading zero",
        kind="vllm",
        old="size: 12",
        new="size: 012",
        message="lockfiles/vllm.yaml:14: vllm.known-good.platforms.linux/amd64.layers[0].size:"
        " expected a whole number, got the text '012'",
    ),
    Bad(
        id="a size below zero",
        kind="vllm",
        old="size: 12",
        new="size: -1",
        message="lockfiles/vllm.yaml:14: vllm.known-good.platforms.linux/amd64.layers[0].size:"
        " expected a whole number, got the text '-1'",
    ),
    Bad(
        id="a size that JSON readers would round",
        kind="vllm",
        old="size: 12",
        new="size: 9007199254740992",
        message="lockfiles/vllm.yaml:14: vllm.known-good.platforms.linux/amd64.layers[0].size:"
        " expected a whole number below 2**53, got 9007199254740992",
    ),
    Bad(
        id="a version of vLLM that is null",
        kind="vllm",
        old='version: "0.20.2rc1.dev9+g01d4d1ad3"',
        new="version: ~",
        message="lockfiles/vllm.yaml:22: vllm.known-good.vllm.version: expected a text, got"
        " nothing",
        hint="leave the key out, or give a value",
    ),
    Bad(
        id="a version of vLLM that is empty",
        kind="vllm",
        old='version: "0.20.2rc1.dev9+g01d4d1ad3"',
        new='version: ""',
        message="lockfiles/vllm.yaml:22: vllm.known-good.vllm.version: expected a text, got an"
        " empty one",
    ),
    Bad(
        id="a list where a mapping is wanted",
        kind="vllm",
        old='version: "0.20.2rc1.dev9+g01d4d1ad3"',
        new="version: [a]",
        message="lockfiles/vllm.yaml:22: vllm.known-good.vllm.version: expected a text, got a list",
    ),
    Bad(
        id="a package directory that is absolute",
        kind="vllm",
        old="package: usr/",
        new="package: /usr/",
        message="lockfiles/vllm.yaml:24: vllm.known-good.vllm.package: expected a relative path,"
        " got '/usr/local/lib/python3.12/dist-packages/vllm'",
    ),
    Bad(
        id="an escrow with two places",
        kind="vllm",
        old="      - layout: escrow/known-good",
        new="      - layout: escrow/known-good\n        registry: ghcr.io/acme/escrow",
        message="lockfiles/vllm.yaml:28: vllm.known-good.escrow[1]: expected one of the keys"
        " 'registry', 'layout', got 'registry', 'layout'",
    ),
    Bad(
        id="an escrow with no place",
        kind="vllm",
        old="      - layout: escrow/known-good\n        digest:",
        new="      - digest:",
        message="lockfiles/vllm.yaml:28: vllm.known-good.escrow[1]: expected one of the keys"
        " 'registry', 'layout', got none of them",
    ),
    Bad(
        id="an escrow that names its digest twice",
        kind="vllm",
        old="ghcr.io/acme/escrow:keep",
        new=f"ghcr.io/acme/escrow@{A}",
        message="lockfiles/vllm.yaml:26: vllm.known-good.escrow[0]: the registry names a digest",
        hint="write the digest under 'digest' only",
        codec_only=True,
    ),
    Bad(
        id="an escrow outside of the project",
        kind="vllm",
        old="layout: escrow/known-good",
        new="layout: escrow/../../other",
        message="lockfiles/vllm.yaml:28: vllm.known-good.escrow[1].layout: a path that leads out:"
        " 'escrow/../../other'",
        hint="leave '..' out",
    ),
    Bad(
        id="a date without a time",
        kind="vllm",
        old='locked: "2026-05-11T00:00:00Z"',
        new="locked: 2026-05-11",
        message="lockfiles/vllm.yaml:30: vllm.known-good.locked: expected a UTC timestamp, got"
        " '2026-05-11'",
        hint="for example 2026-05-11T00:00:00Z",
    ),
    Bad(
        id="a day that is in no calendar",
        kind="vllm",
        old='locked: "2026-05-11T00:00:00Z"',
        new="locked: 2026-02-30T00:00:00Z",
        message="lockfiles/vllm.yaml:30: vllm.known-good.locked: expected a UTC timestamp, got"
        " '2026-02-30T00:00:00Z'",
        hint="for example 2026-05-11T00:00:00Z",
        codec_only=True,
    ),
    Bad(
        id="a short commit",
        kind="pulls",
        old=f'base: "{COMMIT}"',
        new="base: 01d4d1ad3",
        message="lockfiles/pulls.yaml:15: pulls.vllm-41800.base: expected a full git object id of"
        " 40 or 64 hex digits, got '01d4d1ad3'",
        hint="names and short ids can change their meaning; write the id in full",
    ),
    Bad(
        id="a commit that was written as a number in another form",
        kind="pulls",
        old=f'head: "{DIGITS}"',
        new="head: 1.2345678901234568e+39",
        message="lockfiles/pulls.yaml:16: pulls.vllm-41800.head: expected a full git object id of"
        " 40 or 64 hex digits, got '1.2345678901234568e+39'",
        hint="names and short ids can change their meaning; write the id in full",
    ),
    Bad(
        id="a base without a head",
        kind="pulls",
        old=f'    head: "{DIGITS}"\n',
        new="",
        message="lockfiles/pulls.yaml:11: pulls.vllm-41800: 'base' and 'head' go together, got one"
        " of them",
    ),
    Bad(
        id="a pull whose diff is nowhere",
        kind="pulls",
        old="    published:\n      source: club\n      path: patches/marlin.diff\n",
        new="",
        message="lockfiles/pulls.yaml:3: pulls.vllm-40361: neither 'base' and 'head' nor"
        " 'published', so that nothing says where the diff is",
        hint="write the full ids of both commits, or where the diff is published",
    ),
    Bad(
        id="pull request number zero",
        kind="pulls",
        old="pull: 40361",
        new="pull: 0",
        message="lockfiles/pulls.yaml:6: pulls.vllm-40361.follows.pull: expected a whole number"
        " from 1 on, got 0",
    ),
    Bad(
        id="a repository that is an option",
        kind="pulls",
        old="repository: https://github.com/vllm-project/vllm",
        new="repository: --upload-pack=x",
        message="lockfiles/pulls.yaml:5: pulls.vllm-40361.follows.repository: expected a"
        " repository, got '--upload-pack=x'",
    ),
    Bad(
        id="a ref that is a range",
        kind="sources",
        old="ref: refs/heads/main",
        new="ref: main..dev",
        message="lockfiles/sources.yaml:6: sources.club.follows.ref: expected a branch, a tag or a"
        " ref, got 'main..dev'",
    ),
    Bad(
        id="a file that is a directory up",
        kind="sources",
        old="patches/marlin.diff:",
        new="../marlin.diff:",
        message="lockfiles/sources.yaml:10: sources.club.files.../marlin.diff: a path that leads"
        " out: '../marlin.diff'",
        hint="leave '..' out",
    ),
    Bad(
        id="a path with an empty part",
        kind="sources",
        old="patches/marlin.diff:",
        new="patches//marlin.diff:",
        message="lockfiles/sources.yaml:10: sources.club.files.patches//marlin.diff: not the plain"
        " spelling of a path: 'patches//marlin.diff'",
        hint="leave out empty and '.' parts, a slash at the end, and backslashes",
    ),
    Bad(
        id="a path with a line feed at its end",
        kind="sources",
        old="patches/marlin.diff:",
        new='"marlin.diff\\n":',
        message="lockfiles/sources.yaml:10: sources.club.files['marlin.diff\\n']: a text on one"
        " line, got 'marlin.diff\\n'",
    ),
    Bad(
        id="a file name of a wheel that is none",
        kind="wheels",
        old="xxhash-3.5.0-cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
        new="xxhash-3.5.0.tar.gz",
        message="lockfiles/wheels.yaml:7: wheels.xxhash.filename: 'xxhash-3.5.0.tar.gz' is not the"
        " file name of a wheel",
        hint="NAME-VERSION[-BUILD]-PYTHON-ABI-PLATFORM.whl",
    ),
    Bad(
        id="a wheel of another project",
        kind="wheels",
        old="project: xxHash",
        new="project: xx-hash",
        message="lockfiles/wheels.yaml:7: wheels.xxhash.filename:"
        " 'xxhash-3.5.0-cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64.whl' is a wheel of"
        " 'xxhash', wanted 'xx-hash'",
        codec_only=True,
    ),
    Bad(
        id="a wheel of another version",
        kind="wheels",
        old='version: "3.5.0"',
        new="version: 3.5",
        message="lockfiles/wheels.yaml:7: wheels.xxhash.filename:"
        " 'xxhash-3.5.0-cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64.whl' is version"
        " '3.5.0', wanted '3.5'",
        hint="write the version as the file name has it",
        codec_only=True,
    ),
    Bad(
        id="results in the file of another variant",
        kind="results",
        old="variant: demo",
        new="variant: other",
        message="lockfiles/images/demo.yaml:1: results of 'other' belong in"
        " 'lockfiles/images/other.yaml'",
        codec_only=True,
    ),
    Bad(
        id="an outcome that nobody knows",
        kind="results",
        old="outcome: runtime-only",
        new="outcome: partial",
        message="lockfiles/images/demo.yaml:13: results.linux/amd64.patches.P78b.outcome: expected"
        " 'applied' or 'runtime-only' or 'skipped' or 'failed', got the text 'partial'",
    ),
    Bad(
        id="a reason for what needs none",
        kind="results",
        old="outcome: skipped",
        new="outcome: applied",
        message="lockfiles/images/demo.yaml:14: results.linux/amd64.patches.P8: a reason for a"
        " patch that is 'applied'",
        hint="leave it out",
    ),
    Bad(
        id="a patch without an outcome",
        kind="results",
        old="        outcome: skipped\n",
        new="",
        message="lockfiles/images/demo.yaml:14: results.linux/amd64.patches.P8: missing key"
        " 'outcome'",
    ),
    Bad(
        id="a result in which a file does not change",
        kind="results",
        old=f"\n        post: {C}",
        new=" {}",
        message="lockfiles/images/demo.yaml:23: results.linux/amd64.files"
        ".usr/lib/python3.12/y.py: neither 'pre' nor 'post', so that nothing changed",
    ),
)
