"""Variants, overlays and settings that are wrong in one place."""

from tests.lock.bad_documents import Bad
from tests.lock.documents import A, B, C

_EDIT = '      - anchor: "x"\n        insert_before: "\\u00e9"\n'
_FILES = (
    f"files:\n  - path: vllm/marlin.py\n    file: marlin.py\n    replaces: {A}\n"
    '    mode: "0644"\n  - path: /opt/new.py\n    file: new/new.py\n    replaces: nothing\n'
)
_PLATFORM = (
    "for example cuda-8.6: cuda takes the compute capability, rocm and xpu may have one, cpu has"
    " none"
)

BAD_VARIANTS: tuple[Bad, ...] = (
    Bad(
        id="no base",
        kind="variant",
        old="base: {pin: known-good}\n",
        new="",
        message="variants/demo.yaml:1: missing key 'base'",
    ),
    Bad(
        id="a base that is a word",
        kind="variant",
        old="{pin: known-good}",
        new="known-good",
        message="variants/demo.yaml:3: base: expected 'scratch', got the text 'known-good'",
    ),
    Bad(
        id="two bases",
        kind="variant",
        old="{pin: known-good}",
        new=f"{{pin: known-good, layout: base, digest: {A}}}",
        message="variants/demo.yaml:3: base: expected one of the keys 'pin', 'layout', got 'pin',"
        " 'layout'",
    ),
    Bad(
        id="a layout without a digest",
        kind="variant",
        old="{pin: known-good}",
        new="{layout: base}",
        message="variants/demo.yaml:3: base: missing key 'digest'",
    ),
    Bad(
        id="a pin with a digest",
        kind="variant",
        old="{pin: known-good}",
        new=f"{{pin: known-good, digest: {A}}}",
        message="variants/demo.yaml:3: base: unknown key 'digest'",
        hint="the keys here are 'pin'",
    ),
    Bad(
        id="another Python",
        kind="variant",
        old="version: 3.12",
        new="version: 2.7",
        message="variants/demo.yaml:4: python.version: expected the version of a Python, got '2.7'",
        hint="for example 3.12",
    ),
    Bad(
        id="a step of no kind",
        kind="variant",
        old="  - overlay: marlin-pad",
        new="  - overlays: marlin-pad",
        message="variants/demo.yaml:11: steps[1]: expected one of the keys 'pull', 'overlay',"
        " 'source', 'wheels', 'genesis', 'script', got none of them",
        hint="did you mean 'overlay'?",
    ),
    Bad(
        id="a step that is to come",
        kind="variant",
        old="  - overlay: marlin-pad",
        new="  - dockerfile: marlin-pad",
        message="variants/demo.yaml:11: steps[1]: there is no step 'dockerfile' yet",
        hint="build that image first, and name it as the base",
    ),
    Bad(
        id="a step of two kinds",
        kind="variant",
        old="  - overlay: marlin-pad",
        new="  - overlay: marlin-pad\n    pull: vllm-40361",
        message="variants/demo.yaml:11: steps[1]: expected one of the keys 'pull', 'overlay',"
        " 'source', 'wheels', 'genesis', 'script', got 'pull', 'overlay'",
    ),
    Bad(
        id="a step that is a text",
        kind="variant",
        old="  - wheels: [xxhash]",
        new="  - wheels",
        message="variants/demo.yaml:21: steps[3]: expected a mapping, got the text 'wheels'",
    ),
    Bad(
        id="a step with an option of another kind",
        kind="variant",
        old="    name: padding",
        new="    name: padding\n    strip: 1",
        message="variants/demo.yaml:13: steps[1]: unknown key 'strip'",
        hint="the keys here are 'overlay', 'name', 'until'",
    ),
    Bad(
        id="two steps of one name",
        kind="variant",
        old="name: padding",
        new="name: vllm-41800",
        message="variants/demo.yaml:11: steps[1]: a second step with the name 'vllm-41800', the"
        " first is variants/demo.yaml:6: steps[0]",
        hint="give one of them another name with 'name'",
        codec_only=True,
    ),
    Bad(
        id="until something else",
        kind="variant",
        old="until: upstream",
        new="until: merged",
        message="variants/demo.yaml:7: steps[0].until: expected 'upstream', got the text 'merged'",
    ),
    Bad(
        id="a glob that is a number sign",
        kind="variant",
        old='ignore: [tests/*, "docs/**"]',
        new="ignore: tests/*",
        message="variants/demo.yaml:8: steps[0].ignore: expected a list, got the text 'tests/*'",
    ),
    Bad(
        id="a pre-image that is neither",
        kind="variant",
        old="replaces: nothing",
        new="replaces: something",
        message="variants/demo.yaml:18: steps[2].files[0].replaces: expected 'nothing' or"
        " 'sha256:...', got the text 'something'",
    ),
    Bad(
        id="no pre-image",
        kind="variant",
        old="        replaces: nothing\n",
        new="",
        message="variants/demo.yaml:16: steps[2].files[0]: missing key 'replaces'",
    ),
    Bad(
        id="a setuid mode",
        kind="variant",
        old='mode: "0755"',
        new='mode: "4755"',
        message="variants/demo.yaml:19: steps[2].files[0].mode: expected a mode of four octal"
        " digits that starts with 0, got '4755'",
        hint='for example "0644" or "0755"',
    ),
    Bad(
        id="a target that leaves the image",
        kind="variant",
        old="to: /opt/marlin.diff",
        new="to: /opt/../../etc/passwd",
        message="variants/demo.yaml:17: steps[2].files[0].to: a path that leads out:"
        " '/opt/../../etc/passwd'",
        hint="leave '..' out",
    ),
    Bad(
        id="a target that would delete",
        kind="variant",
        old="to: /opt/marlin.diff",
        new="to: /opt/.wh.marlin/diff",
        message="variants/demo.yaml:17: steps[2].files[0].to: a name that starts with '.wh.' would"
        " delete files: '/opt/.wh.marlin/diff'",
        hint="no file of an image can have it; to delete a file, use 'remove'",
    ),
    Bad(
        id="a target that no file system takes",
        kind="variant",
        old="to: /opt/marlin.diff",
        new=f"to: /opt/{128 * 'é'}",
        message="variants/demo.yaml:17: steps[2].files[0].to: a name over 255 bytes:"
        f" '/opt/{55 * 'é'}...'",
        codec_only=True,
    ),
    Bad(
        id="no wheels",
        kind="variant",
        old="wheels: [xxhash]",
        new="wheels: []",
        message="variants/demo.yaml:21: steps[3].wheels: expected a list of one or more, got an"
        " empty one",
    ),
    Bad(
        id="a wheel twice",
        kind="variant",
        old="wheels: [xxhash]",
        new="wheels: [xxhash, xxhash]",
        message="variants/demo.yaml:21: steps[3].wheels: 'xxhash' stands twice",
    ),
    Bad(
        id="a platform that vLLM does not know",
        kind="variant",
        old="cuda-8.6",
        new="tpu",
        message="variants/demo.yaml:24: steps[4].platform: expected a platform that vLLM runs on,"
        " got 'tpu'",
        hint=_PLATFORM,
    ),
    Bad(
        id="CUDA without the capability",
        kind="variant",
        old="cuda-8.6",
        new="cuda",
        message="variants/demo.yaml:24: steps[4].platform: expected a platform that vLLM runs on,"
        " got 'cuda'",
        hint=_PLATFORM,
    ),
    Bad(
        id="a patch set without a platform",
        kind="variant",
        old="    platform: cuda-8.6\n",
        new="",
        message="variants/demo.yaml:22: steps[4]: missing key 'platform'",
    ),
    Bad(
        id="a second patch set",
        kind="variant",
        old="  - wheels: [xxhash]\n",
        new="  - wheels: [xxhash]\n  - {genesis: v7.51, platform: cpu}\n",
        message="variants/demo.yaml:23: steps[5]: a second genesis step, the first is"
        " variants/demo.yaml:22: steps[4]: patches look at what others wrote, so that two runs give"
        " another tree than one",
        hint="bake all patches in one step: the flags in image.env choose them",
        codec_only=True,
    ),
    Bad(
        id="a script of two places",
        kind="variant",
        old="{overlay: marlin-pad, path:",
        new="{overlay: marlin-pad, source: club, path:",
        message="variants/demo.yaml:26: steps[5].script: expected one of the keys 'overlay',"
        " 'source', got 'overlay', 'source'",
    ),
    Bad(
        id="a script without a file",
        kind="variant",
        old="{overlay: marlin-pad, path: tools/fix.py}",
        new="{overlay: marlin-pad}",
        message="variants/demo.yaml:26: steps[5].script: missing key 'path'",
    ),
    Bad(
        id="a script in another language",
        kind="variant",
        old="interpreter: python",
        new="interpreter: perl",
        message="variants/demo.yaml:27: steps[5].interpreter: expected 'python' or 'sh' or 'bash',"
        " got the text 'perl'",
    ),
    Bad(
        id="a script that touches nothing",
        kind="variant",
        old="touches: [vllm/config.py, /opt/new]",
        new="touches: []",
        message="variants/demo.yaml:28: steps[5].touches: expected a list of one or more, got an"
        " empty one",
    ),
    Bad(
        id="a script that touches a file twice",
        kind="variant",
        old="touches: [vllm/config.py, /opt/new]",
        new="touches: [/opt/new, /opt/new]",
        message="variants/demo.yaml:28: steps[5].touches: '/opt/new' stands twice",
    ),
    Bad(
        id="an environment of a script that removes",
        kind="variant",
        old="{LEVEL: 2}",
        new="{LEVEL: null}",
        message="variants/demo.yaml:30: steps[5].environment.LEVEL: expected a text, got nothing",
        hint='write "" for an empty text, or leave the key out',
    ),
    Bad(
        id="an environment of a script with a variable of ours",
        kind="variant",
        old="{LEVEL: 2}",
        new="{BUILDER_PACKAGES: /}",
        message="variants/demo.yaml:30: steps[5].environment.BUILDER_PACKAGES: 'BUILDER_PACKAGES':"
        " what starts with 'BUILDER_' is set by builder",
        codec_only=True,
    ),
    Bad(
        id="an environment of a script with what is always the same",
        kind="variant",
        old="{LEVEL: 2}",
        new="{HOME: /root}",
        message="variants/demo.yaml:30: steps[5].environment.HOME: 'HOME' is the same for every"
        " program in the sandbox",
        codec_only=True,
    ),
    Bad(
        id="a variable without a value",
        kind="variant",
        old="{VLLM_USE: 1,",
        new="{VLLM_USE: ,",
        message="variants/demo.yaml:36: image.env.VLLM_USE: expected a text or null, got nothing",
        hint='write null to remove it, or "" for an empty text',
    ),
    Bad(
        id="a variable with a blank in its name",
        kind="variant",
        old="{VLLM_USE: 1,",
        new="{VLLM USE: 1,",
        message="variants/demo.yaml:36: image.env['VLLM USE']: 'VLLM USE' is not the name of an"
        " environment variable",
    ),
    Bad(
        id="a command that is a text",
        kind="variant",
        old="command: []",
        new="command: vllm serve",
        message="variants/demo.yaml:39: image.command: expected a list, got the text 'vllm serve'",
    ),
    Bad(
        id="a working directory that is relative",
        kind="variant",
        old="workdir: /srv",
        new="workdir: srv",
        message="variants/demo.yaml:40: image.workdir: expected a path that starts with '/', got"
        " 'srv'",
    ),
)

BAD_OVERLAYS: tuple[Bad, ...] = (
    Bad(
        id="an empty anchor",
        kind="overlay",
        old=_EDIT,
        new=_EDIT.replace('"x"', '""'),
        message="overlays/demo/overlay.yaml:22: edits[0].edits[1]: an empty anchor stands"
        " everywhere",
    ),
    Bad(
        id="an edit with two actions",
        kind="overlay",
        old=_EDIT,
        new=_EDIT + '        replace: "y"\n',
        message="overlays/demo/overlay.yaml:22: edits[0].edits[1]: expected one of the keys"
        " 'replace', 'insert_before', 'insert_after', got 'replace', 'insert_before'",
    ),
    Bad(
        id="an edit that inserts nothing",
        kind="overlay",
        old='insert_before: "\\u00e9"',
        new='insert_before: ""',
        message="overlays/demo/overlay.yaml:22: edits[0].edits[1]: 'insert_before' with an empty"
        " text changes nothing",
    ),
    Bad(
        id="an edit that changes nothing",
        kind="overlay",
        old='insert_before: "\\u00e9"',
        new='replace: "x"',
        message="overlays/demo/overlay.yaml:22: edits[0].edits[1]: an edit that replaces its"
        " anchor with itself changes nothing",
        codec_only=True,
    ),
    Bad(
        id="an anchor that stands zero times",
        kind="overlay",
        old="count: 2",
        new="count: 0",
        message="overlays/demo/overlay.yaml:20: edits[0].edits[0].count: expected a whole number"
        " from 1 on, got 0",
    ),
    Bad(
        id="a removal of nothing",
        kind="overlay",
        old=f"replaces: {B}",
        new="replaces: nothing",
        message="overlays/demo/overlay.yaml:12: remove[0].replaces: expected 'sha256:' and 64 hex"
        " digits, got 'nothing'",
    ),
    Bad(
        id="an empty list of files",
        kind="overlay",
        old=_FILES,
        new="files: []\n",
        message="overlays/demo/overlay.yaml:2: files: expected a list of one or more, got an empty"
        " one",
    ),
    Bad(
        id="two rules for one file",
        kind="overlay",
        old="path: vllm/config.py",
        new="path: vllm/marlin.py",
        message="overlays/demo/overlay.yaml:14: edits[0]: a second rule for 'vllm/marlin.py', the"
        " first is overlays/demo/overlay.yaml:3: files[0]",
        codec_only=True,
    ),
    Bad(
        id="a file that is not there",
        kind="overlay",
        old="file: marlin.py",
        new="file: marlin-pad.py",
        message="overlays/demo/overlay.yaml:4: files[0].file: no file 'marlin-pad.py' in"
        " overlays/demo",
        hint="did you mean 'marlin.py'?",
        codec_only=True,
    ),
    Bad(
        id="a file that is the recipe",
        kind="overlay",
        old="file: marlin.py",
        new="file: overlay.yaml",
        message="overlays/demo/overlay.yaml:4: files[0].file: 'overlay.yaml' is the recipe, not a"
        " file to use",
        codec_only=True,
    ),
    Bad(
        id="a file of another directory",
        kind="overlay",
        old="file: marlin.py",
        new="file: ../other/marlin.py",
        message="overlays/demo/overlay.yaml:4: files[0].file: a path that leads out:"
        " '../other/marlin.py'",
        hint="leave '..' out",
    ),
    Bad(
        id="an empty list of scripts",
        kind="overlay",
        old="scripts: [tools/fix.py]",
        new="scripts: []",
        message="overlays/demo/overlay.yaml:32: scripts: expected a list of one or more, got an"
        " empty one",
    ),
    Bad(
        id="a file that nothing uses",
        kind="overlay",
        old="patch:\n  file: fix.diff\n  root: /\n  strip: 0\n  ignore: [tests/*]\n",
        new="",
        message="overlays/demo/fix.diff: overlay.yaml does not use this file",
        hint="name it in overlays/demo/overlay.yaml, or remove it",
        codec_only=True,
    ),
    Bad(
        id="a digest of an edit in upper case",
        kind="overlay",
        old=f"replaces: {C}",
        new=f"replaces: sha256:{C.hex.upper()}",
        message="overlays/demo/overlay.yaml:15: edits[0].replaces: sha256 takes lower-case hex"
        f" digits, got '{C.hex.upper()}'",
    ),
)

BAD_SETTINGS: tuple[Bad, ...] = (
    Bad(
        id="a truth value of YAML 1.1",
        kind="settings",
        old="plain_http: true",
        new="plain_http: yes",
        message="builder.yaml:10: registries.docker.io.plain_http: expected true or false, got the"
        " text 'yes'",
    ),
    Bad(
        id="a host with a path",
        kind="settings",
        old="  docker.io:",
        new="  docker.io/library:",
        message="builder.yaml:7: registries.docker.io/library: 'docker.io/library' is not the host"
        " of a registry",
        hint="for example docker.io",
    ),
    Bad(
        id="a host by its other name",
        kind="settings",
        old="  docker.io:",
        new="  index.docker.io:",
        message="builder.yaml:7: registries.index.docker.io: 'index.docker.io' is not the host of a"
        " registry",
        hint="for example docker.io",
        codec_only=True,
    ),
    Bad(
        id="a mirror without a dot",
        kind="settings",
        old="mirrors: [mirror.example/docker,",
        new="mirrors: [mirror,",
        message="builder.yaml:9: registries.docker.io.mirrors[0]: 'mirror' is not a place in a"
        " registry",
        hint="host[:port][/prefix], without scheme",
        codec_only=True,
    ),
    Bad(
        id="mirrors of something else",
        kind="settings",
        old="  git:",
        new="  got:",
        message="builder.yaml:4: mirrors: unknown key 'got'",
        hint="did you mean 'git'?",
    ),
    Bad(
        id="a platform of one word",
        kind="settings",
        old="linux/arm64/v8",
        new="arm64",
        message="builder.yaml:2: platform: expected os/architecture, got 'arm64'",
        hint="for example linux/amd64",
    ),
    Bad(
        id="an allowlist that is switched off",
        kind="settings",
        old="allowlist: warning",
        new="allowlist: off",
        message="builder.yaml:16: policy.genesis.allowlist: expected 'error' or 'warning', got the"
        " text 'off'",
    ),
    Bad(
        id="a level that is none",
        kind="settings",
        old="retired: error",
        new="retired: warn",
        message="builder.yaml:24: policy.genesis.retired: expected 'error' or 'warning' or 'off',"
        " got the text 'warn'",
    ),
    Bad(
        id="a rule of another name",
        kind="settings",
        old="    odd-value: off",
        new="    odd-values: off",
        message="builder.yaml:20: policy.genesis: unknown key 'odd-values'",
        hint="did you mean 'odd-value'?",
    ),
    Bad(
        id="a policy for what there is none",
        kind="settings",
        old="policy:\n  genesis:",
        new="policy:\n  genisis:",
        message="builder.yaml:15: policy: unknown key 'genisis'",
        hint="did you mean 'genesis'?",
    ),
)

BAD_RECIPES = BAD_VARIANTS + BAD_OVERLAYS + BAD_SETTINGS
