"""``builder.compose.pin``: one scalar is another, and every other byte is as it was."""

import pytest

from builder.errors import ProjectError
from tests.compose.worlds import BASE, DEMO, FILE, ONE, TWO, pinned

VARIABLE = "${VLLM_IMAGE:-vllm/vllm-openai:v1}"
NESTED = "${VLLM_IMAGE:-vllm/vllm-openai:nightly-${VLLM_NIGHTLY_SHA}}"


def service(image: str) -> str:
    return f"services:\n  a:\n    image: {image}\n    labels: {{builder.variant: demo}}\n"


@pytest.mark.parametrize(
    "before, after",
    [
        pytest.param("vllm:v1", DEMO, id="plain"),
        pytest.param('"vllm:v1"', f'"{DEMO}"', id="double quotes"),
        pytest.param("'vllm:v1'", f"'{DEMO}'", id="single quotes"),
        pytest.param(VARIABLE, DEMO, id="a variable with a default"),
        pytest.param(NESTED, DEMO, id="a variable in the default of another"),
        pytest.param(f'"{NESTED}"', f'"{DEMO}"', id="the same, quoted"),
        pytest.param("${IMAGE:?say which}", DEMO, id="a variable that is demanded"),
        pytest.param("vllm:${TAG-v1}", DEMO, id="a variable for the tag"),
        pytest.param("vllm:v1  # captured", f"{DEMO}  # captured", id="a comment beside it"),
        pytest.param("vllm:v1\t# tabs\there", f"{DEMO}\t# tabs\there", id="tabs"),
        pytest.param("vllm:v1@sha256:" + "0" * 64, DEMO, id="another digest"),
        pytest.param("&img vllm:v1", f"&img {DEMO}", id="an anchor"),
        pytest.param('!!str "vllm:v1"', f'!!str "{DEMO}"', id="a tag"),
        pytest.param("!override &i !!str vllm:v1", None, id="two tags"),
        pytest.param("&i !!str # why\n      vllm:v1", f"&i !!str # why\n      {DEMO}", id="below"),
        pytest.param("\n      vllm:v1", f"\n      {DEMO}", id="on the next line"),
        pytest.param('"vllm:\\\n      v1"', f'"{DEMO}"', id="folded in quotes"),
        pytest.param('"vllm\\u003av1"', f'"{DEMO}"', id="an escape"),
        pytest.param(">-\n      vllm:v1", f">-\n      {DEMO}", id="a folded block"),
        pytest.param("|2-  # c\n      vllm:v1\n\n", f"|2-  # c\n      {DEMO}\n\n", id="a block"),
    ],
)
def test_only_the_scalar_changes(before: str, after: str | None) -> None:
    data = service(before)
    if after is None:
        with pytest.raises(ProjectError, match="not YAML"):
            pinned(data)
        return
    new, done = pinned(data)
    assert new.decode() == service(after)
    assert [(item.service, item.after, item.override) for item in done] == [("a", DEMO, None)]
    assert pinned(new)[0] == new


@pytest.mark.parametrize(
    "data, after",
    [
        pytest.param(
            "x-eng: &eng\n  image: vllm:v1\n  labels: [builder.variant=demo]\nservices:\n"
            "  a:\n    <<: *eng\n  b: {<<: [*eng], command: x}\n",
            {"vllm:v1": DEMO},
            id="a merge key of two services that agree",
        ),
        pytest.param(
            "x-img: &img vllm:v1\nservices:\n  a:\n    image: *img # builder: demo\n"
            "  b:\n    # builder: demo\n    image: *img\n",
            {"vllm:v1": DEMO},
            id="an alias",
        ),
        pytest.param(
            "services:\n  a:\n    extends: b\n  b:\n    extends: {service: c}\n"
            "  c:\n    image: vllm:v1\n    labels: {builder.variant: demo}\n",
            {"vllm:v1": DEMO},
            id="extends within the file",
        ),
        pytest.param(
            "services:\n  a:\n    image: vllm:v1\n    labels: {builder.variant: demo}\n"
            "---\nservices:\n  a:\n    command: x\n---\nservices:\n  a: {image: vllm:v2}\n",
            {"vllm:v1": DEMO, "vllm:v2": DEMO},
            id="several documents",
        ),
        pytest.param(
            "services:\n  a:\n    image: one:v1 # builder: demo\n  b:\n    # builder: base\n"
            "    image: two:v1\n  c: {image: three:v1}\n  d: {build: .}\n",
            {"one:v1": DEMO, "two:v1": f"docker.io/{BASE}"},
            id="comments, and services that name nothing",
        ),
        pytest.param(
            "services:\n  a:\n    image: >-   # builder: demo\n      vllm:v1\n    command: x\n",
            {"vllm:v1": DEMO},
            id="a comment at the head of a block",
        ),
        pytest.param(
            "services:\n  a: {image: vllm:v1, x-c: d} \n  b: {image: v:2 } # builder: demo\n",
            {"v:2": DEMO},
            id="a comment after a flow mapping",
        ),
        pytest.param(
            "# image: vllm:v1\nservices:\n  a:\n    image: vllm:v9 # builder: demo\n"
            '    entrypoint:\n      - |\n        image: vllm:v9\n        $${X:-0} "$$@"\n',
            {"vllm:v9 # b": f"{DEMO} # b"},
            id="text that looks like an image",
        ),
        pytest.param(
            "services: !override\n  a: !reset\n    image: vllm:v1\n    labels: !override\n"
            "      builder.variant: demo\n    ports: !reset []\n",
            {"vllm:v1": DEMO},
            id="tags of Compose's",
        ),
        pytest.param(
            "services:\n  a:\n    profiles: [x]\n    image: äö/日本:🚀\n    labels:\n"
            '      - "builder.variant=demo"\n    # 🚀 ä\n    x-note: "ünï"\n',
            {"äö/日本:🚀": DEMO},
            id="characters of several bytes",
        ),
        pytest.param(
            "x-a: &a {image: one:1}\nx-b: &b {image: two:2}\nservices:\n  a:\n"
            "    <<: [*a, *b]\n    labels: {builder.variant: demo}\n",
            {"one:1": DEMO},
            id="the first of several merges",
        ),
        pytest.param(
            "x-a: &a {image: one:1}\nx-b: &a {image: two:2}\nservices:\n  a:\n"
            "    <<: *a\n    labels: {builder.variant: demo}\n",
            {"two:2": DEMO},
            id="an anchor that is set again",
        ),
    ],
)
@pytest.mark.parametrize("dress", ["as it is", "CRLF", "BOM", "no end"])
def test_the_image_is_edited_where_it_stands(data: str, after: dict[str, str], dress: str) -> None:
    wanted = data
    for old, new in after.items():
        wanted = wanted.replace(old, new)
    assert pinned(dressed(data, dress))[0] == dressed(wanted, dress)


def dressed(text: str, dress: str) -> bytes:
    match dress:
        case "CRLF":
            text = text.replace("\n", "\r\n")
        case "BOM":
            text = f"\ufeff{text}"
        case "no end":
            text = text.rstrip("\n")
        case _:
            pass
    return text.encode()


@pytest.mark.parametrize(
    "before, after",
    [
        pytest.param("vllm:v1", DEMO, id="nothing to keep"),
        pytest.param(VARIABLE, f"${{VLLM_IMAGE:-{DEMO}}}", id="a default"),
        pytest.param("${A-b:c}", f"${{A-{DEMO}}}", id="a default for unset alone"),
        pytest.param(f'"{NESTED}"', f'"${{VLLM_IMAGE:-{DEMO}}}"', id="a nested one, in quotes"),
    ],
)
def test_an_override_is_kept_where_it_is_asked_for(before: str, after: str) -> None:
    new, _ = pinned(service(before), keep_override=True)
    assert new.decode() == service(after)
    again, done = pinned(new, keep_override=True)
    assert again == new
    assert done[0].override == (
        None if before == "vllm:v1" else after.strip('"$').split("-")[0][1:].rstrip(":")
    )
    assert pinned(new)[0].decode() == service(after.replace(after.strip('"'), DEMO))


@pytest.mark.parametrize(
    "image", ["${IMAGE:?which}", "${IMAGE}", "$IMAGE", "a:${TAG:-v1}", "${A:+b}"]
)
def test_an_override_without_a_default_of_its_own_cannot_be_kept(image: str) -> None:
    with pytest.raises(ProjectError) as caught:
        pinned(service(image), keep_override=True)
    assert caught.value.message == (
        f"{FILE}:3: service 'a': {image!r} has no default of its own to pin"
    )
    assert caught.value.hint == "without --keep-override all of it is replaced"


def test_a_right_repository_stays_as_it_is_spelt() -> None:
    data = "services:\n  a:\n    image: {} # builder: base\n"
    for name in (
        "vllm/vllm-openai",
        "docker.io/vllm/vllm-openai",
        "index.docker.io/vllm/vllm-openai",
    ):
        for end in ("", ":v1", f":v1@{ONE}", f"@{ONE}"):
            new, _ = pinned(data.format(name + end))
            assert new.decode() == data.format(f"{name}:nightly{BASE[BASE.index('@') :]}")


def test_an_address_is_quoted_where_yaml_would_take_it_for_a_list() -> None:
    data = "services:\n  a:\n    image: {} # builder: address\n"
    image = f"[::1]:5000/me/vllm:mine@{TWO}"
    for before, after in (("x:1", f'"{image}"'), ("'x:1'", f"'{image}'"), ('"x"', f'"{image}"')):
        assert pinned(data.format(before))[0].decode() == data.format(after)


def test_a_repository_that_builder_yaml_does_not_say_is_the_one_that_stands() -> None:
    data = "services:\n  a:\n    image: {} # builder: unsaid\n"
    for image in ("me/vllm:mine", f"me/vllm:mine@{ONE}", "${IMAGE:-me/vllm:mine}"):
        assert pinned(data.format(image))[0].decode() == data.format(f"me/vllm:mine@{ONE}")
    hint = "say where variants are published, as 'publish: REGISTRY/REPOSITORY' in builder.yaml"
    refused = {
        "vllm/vllm-openai:mine": (
            (
                f"{FILE}:3: service 'a': variant unsaid: 'vllm/vllm-openai:mine' is in the"
                " repository of its base, where it is not"
            ),
            f"{hint}, or write its own REPOSITORY:TAG for the image",
        ),
        "${IMAGE:-me/vllm:${TAG}}": (
            (
                f"{FILE}:3: service 'a': variant unsaid: '${{IMAGE:-me/vllm:${{TAG}}}}' does not"
                " state a repository, and builder.yaml says nothing of publishing"
            ),
            f"{hint}, or write REPOSITORY:TAG for the image",
        ),
    }
    for image, said in refused.items():
        with pytest.raises(ProjectError) as caught:
            pinned(data.format(image))
        assert (caught.value.message, caught.value.hint) == said


NAMED = "    labels: {builder.variant: demo}\n"


@pytest.mark.parametrize(
    "data, message",
    [
        pytest.param(
            f"services:\n  a:\n    build: .\n    image: x:1\n{NAMED}",
            "4: service 'a': it names 'demo', and has 'build': what it runs is built here",
            id="built on the spot",
        ),
        pytest.param(
            f"services:\n  a:\n    image: {{x: 1}}\n{NAMED}",
            "2: service 'a': its image is no text",
            id="an image that is a mapping",
        ),
        *(
            pytest.param(
                f"services:\n  a:\n    image: {empty}\n{NAMED}",
                "2: service 'a': it names 'demo', and has no image",
                id=f"an image that is {empty!r}",
            )
            for empty in ("", "~", "null", '""', "!reset x:1", ">-")
        ),
        pytest.param(
            f"services:\n  a:\n    extends: {{file: b.yml, service: b}}\n{NAMED}",
            "2: service 'a': it names 'demo', and its image is that of 'b' of 'b.yml'",
            id="an image of another file",
        ),
        pytest.param(
            f"services:\n  a:\n    extends: b\n{NAMED}  b:\n    extends: a\n",
            "2: service 'a': it names 'demo', and has no image",
            id="extends in a circle",
        ),
        pytest.param(
            f"x-a: &a\n  image: x:1\nservices:\n  a:\n    <<: *a\n{NAMED}  b:\n    <<: *a\n  c:\n"
            "    <<: *a\n    labels: {builder.variant: base}\n",
            "2: service 'a' names 'demo', and shares its image with services that name something"
            " else: 'b' (nothing), 'c' ('base')",
            id="a shared image",
        ),
        pytest.param(
            f"services:\n  a:\n    extends: b\n{NAMED}  b:\n    image: x:1\n",
            "6: service 'a' names 'demo', and shares its image with services that name something"
            " else: 'b' (nothing)",
            id="an image that the extended service has, too",
        ),
        pytest.param(
            "services:\n  a:\n    image: x:1 # builder: dmo\n",
            "3: service 'a': no variant and no pinned base 'dmo'",
            id="a name that is none",
        ),
        pytest.param(
            f"services:\n  a:\n    image: |\n      x:1\n{NAMED}",
            " the image on line 3 cannot be replaced by itself",
            id="a block that ends in a line break",
        ),
        pytest.param(
            "services:\n  a:\n    image: x:1 # builder: unbaked\n",
            "3: service 'a': variant unbaked has no accepted result, and was not built on this"
            " machine",
            id="a variant without a result",
        ),
    ],
)
def test_what_cannot_be_pinned_is_refused(data: str, message: str) -> None:
    with pytest.raises(ProjectError) as caught:
        pinned(data)
    assert caught.value.message == f"{FILE}:{message}"
