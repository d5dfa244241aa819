"""One complete document of each kind, and the codec that reads it."""

from collections.abc import Callable, Mapping

from builder.digest import Digest
from builder.lock import codec
from builder.recipe import read_overlay, read_variant
from builder.settings.reader import read_settings
from builder.trust.codec import read_policy
from tests.trust.keys import public

A = Digest.of(b"a")
B = Digest.of(b"b")
C = Digest.of(b"c")
COMMIT = "01d4d1ad375dc5854779c593eee093bcebb0cada"
DIGITS = "1234567890" * 4
"""A commit id that a YAML reader with types makes a number of."""

DOCUMENTS: dict[str, str] = {
    "vllm": f"""\
version: 1
vllm:
  known-good:
    follows:
      image: docker.io/vllm/vllm-openai
      tag: nightly-{COMMIT}
    index: {A}
    platforms:
      linux/amd64:
        manifest: {B}
        config: {C}
        layers:
          - digest: {A}
            size: 12
            diff_id: {B}
            files: {C}
          - digest: {C}
            size: 0
      linux/arm64/v8:
        manifest: {C}
    vllm:
      version: "0.20.2rc1.dev9+g01d4d1ad3"
      commit: "{COMMIT}"
      package: usr/local/lib/python3.12/dist-packages/vllm
    escrow:
      - registry: ghcr.io/acme/escrow:keep
        digest: {A}
      - layout: escrow/known-good
        digest: {B}
    locked: "2026-05-11T00:00:00Z"
""",
    "pulls": f"""\
version: 1
pulls:
  vllm-40361:
    follows:
      repository: https://github.com/vllm-project/vllm
      pull: 40361
    published:
      source: club
      path: patches/marlin.diff
    diff: {B}
  vllm-41800:
    follows:
      repository: https://github.com/vllm-project/vllm
      pull: 41800
    base: "{COMMIT}"
    head: "{DIGITS}"
    diff: {A}
    raw: {C}
    root: "."
    strip: 1
    escrow:
      - registry: ghcr.io/acme/escrow
        digest: {A}
    locked: "2026-05-11T23:59:59Z"
""",
    "sources": f"""\
version: 1
sources:
  club:
    follows:
      repository: https://github.com/noonghunna/club-3090
      ref: refs/heads/main
    commit: "{DIGITS}"
    tree: "{COMMIT}"
    files:
      patches/marlin.diff:
        digest: {A}
        size: 12
      "templates/a b.jinja":
        digest: {B}
        size: 0
    escrow:
      - layout: escrow/club
        digest: {C}
    locked: "2026-05-11T00:00:00Z"
""",
    "wheels": f"""\
version: 1
wheels:
  xxhash:
    follows:
      project: xxHash
      version: "3.5.0"
    filename: xxhash-3.5.0-cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64.whl
    digest: {A}
    size: 123
    path: wheels/xxhash
    escrow:
      - layout: escrow/wheels
        digest: {A}
    locked: "2026-05-11T00:00:00Z"
""",
    "genesis": f"""\
version: 1
genesis:
  v7.72.2:
    follows:
      repository: https://github.com/Sandermage/genesis-vllm-patches
      ref: dev
    commit: "{DIGITS}"
    tree: "{COMMIT}"
    payload:
      path: vllm/_genesis
      tree: "{DIGITS}"
    plugin:
      path: genesis_vllm_plugin
      tree: "{DIGITS}"
    reachable:
      - refs/heads/dev
      - refs/pull/25/head
    escrow:
      - layout: escrow/genesis
        digest: {A}
    locked: "2026-05-11T00:00:00Z"
""",
    "models": f"""\
version: 1
models:
  qwen3.6-27b:
    follows:
      repository: Lorbus/Qwen3.6-27B-int4-AutoRound
      revision: main
    commit: "{DIGITS}"
    files:
      config.json:
        digest: {A}
        size: 700
      model.safetensors: {{}}
    include:
      - "*.json"
    require:
      - mtp.fc.weight
    forbid:
      - mtp.fc.qweight
    tensors: 1899
    dtypes:
      - BF16
      - I32
    locked: "2026-05-11T00:00:00Z"
""",
    "waivers": f"""\
version: 1
waivers:
  on-a-commit:
    rule: genesis-allowlist
    genesis: "{DIGITS}"
    vllm: "{COMMIT}"
    reason: "tried on two cards, see the notes of 2026-05-11"
    author: "Ada Lovelace <ada@example.org>"
    until: "2028-02-29"
  on-a-version:
    rule: genesis-allowlist
    genesis: "{COMMIT}"
    vllm: "0.20.2"
    reason: "no commit is known of a release"
    author: Ada
    until: "2026-12-31"
""",
    "results": f"""\
version: 1
variant: demo
results:
  linux/amd64:
    digest: {A}
    diff_ids:
      - {B}
      - {C}
    patches:
      P67:
        outcome: applied
      P78b:
        outcome: runtime-only
      P8:
        outcome: skipped
        reason: "opt-in: set GENESIS_ENABLE_P8"
      "PN1 and more":
        outcome: failed
    files:
      usr/lib/python3.12/x.py:
        pre: {A}
        post: {B}
      usr/lib/python3.12/y.py:
        post: {C}
""",
    "variant": f"""\
version: 1
description: all that a variant can say
base: {{pin: known-good}}
python: {{version: 3.12, packages: usr/local/lib/python3.12/dist-packages}}
steps:
  - pull: vllm-41800
    until: upstream
    ignore: [tests/*, "docs/**"]
    root: .
    strip: 1
  - overlay: marlin-pad
    name: padding
  - source: club
    until: upstream
    files:
      - from: patches/marlin.diff
        to: /opt/marlin.diff
        replaces: nothing
        mode: "0755"
      - {{from: "templates/a b.jinja", to: vllm/a.jinja, replaces: {A}}}
  - wheels: [xxhash]
  - genesis: v7.72.2
    name: patches
    platform: cuda-8.6
    speculative: mtp
  - script: {{overlay: marlin-pad, path: tools/fix.py}}
    interpreter: python
    touches: [vllm/config.py, /opt/new]
    arguments: [--all, ""]
    environment: {{LEVEL: 2}}
  - script: {{source: club, path: patches/marlin.diff}}
    name: shell
    interpreter: sh
    touches: [vllm/a.py]
image:
  env: {{VLLM_USE: 1, OLD: null, EMPTY: "", NO: no}}
  labels: {{org.example.name: demo, gone: ~}}
  entrypoint: [python3, -m, vllm]
  command: []
  workdir: /srv
  user: "1000:1000"
models: [qwen3.6-27b]
""",
    "overlay": f"""\
version: 1
files:
  - path: vllm/marlin.py
    file: marlin.py
    replaces: {A}
    mode: "0644"
  - path: /opt/new.py
    file: new/new.py
    replaces: nothing
remove:
  - path: vllm/old.py
    replaces: {B}
edits:
  - path: vllm/config.py
    replaces: {C}
    edits:
      - anchor: |
          def old():
          \treturn 1
        count: 2
        replace: ""
      - anchor: "x"
        insert_before: "\\u00e9"
      - anchor: "y"
        insert_after: |-
          z
patch:
  file: fix.diff
  root: /
  strip: 0
  ignore: [tests/*]
scripts: [tools/fix.py]
""",
    "settings": """\
version: 1
platform: linux/arm64/v8
mirrors:
  git:
    https://github.com/: https://git.example/mirror/
registries:
  docker.io:
    location: hub.example:5000/hub
    mirrors: [mirror.example/docker, localhost:5001]
    plain_http: true
    ca: certificates/ca.pem
    tags: true
store: .store
policy:
  genesis:
    allowlist: warning
    pending: off
    no-list: error
    unknown-flag: warning
    odd-value: off
    no-effect: error
    conflict: off
    unmet-requirement: warning
    retired: error
    superseded: off
    version-range: off
sandbox:
  use: docker-engine
  image: hub.example/python@sha256:1111111111111111111111111111111111111111111111111111111111111111
""",
}

DOCUMENTS["trust"] = f"""\
version: 3
expires: "2027-12-31"
keys:
  ada:
    public: "{public("ada").openssh.decode().strip()}"
    fingerprint: {public("ada").fingerprint}
    owner: "Ada Lovelace <ada@example.org>"
    state: active
  ci-2026:
    public: "{public("bob").openssh.decode().strip()}"
    owner: CI
    state: active
    since: "2026-01-01"
    until: "2027-06-30"
  ci-2025:
    public: "{public("dan").openssh.decode().strip()}"
    owner: CI
    state: revoked
roles:
  root:
    keys:
      - ada
    threshold: 1
  image:
    keys:
      - ci-2026
      - ci-2025
    threshold: 1
scopes:
  - repositories:
      - "registry.example/acme/*"
      - docker.io/library/python
      - "localhost:5000/*"
      - "*"
    role: image
waivers:
  days: 90
grandfathered:
  - {A}
"""

OVERLAY_FILES: Mapping[str, bytes] = {
    "overlay.yaml": b"",
    "README.md": b"",
    "marlin.py": b"new marlin",
    "new/new.py": b"new",
    "fix.diff": b"diff",
    "tools/fix.py": b"fix",
}

FILES: Mapping[str, str] = {
    "vllm": codec.IMAGES,
    "pulls": codec.PULLS,
    "sources": codec.SOURCES,
    "wheels": codec.WHEELS,
    "genesis": codec.GENESIS,
    "models": codec.MODELS,
    "waivers": codec.WAIVERS,
    "results": "lockfiles/images/demo.yaml",
    "variant": "variants/demo.yaml",
    "overlay": "overlays/demo/overlay.yaml",
    "settings": "builder.yaml",
    "trust": "trust.yaml",
}


def _overlay(data: bytes) -> object:
    return read_overlay(
        data,
        name="demo",
        directory="overlays/demo",
        present=OVERLAY_FILES,
        load=OVERLAY_FILES.__getitem__,
    )


READERS: Mapping[str, Callable[[bytes], object]] = {
    "vllm": codec.read_images,
    "pulls": codec.read_pulls,
    "sources": codec.read_sources,
    "wheels": codec.read_wheels,
    "genesis": codec.read_genesis,
    "models": codec.read_models,
    "waivers": codec.read_waivers,
    "results": lambda data: codec.read_results(data, file=FILES["results"]),
    "variant": lambda data: read_variant(data, name="demo", file=FILES["variant"]),
    "overlay": _overlay,
    "settings": read_settings,
    "trust": read_policy,
}


def changed(kind: str, old: str, new: str) -> bytes:
    """The document of a kind with one place changed, which must be there."""
    document = DOCUMENTS[kind]
    assert old in document, f"{old!r} is not in the document"
    return document.replace(old, new, 1).encode()
