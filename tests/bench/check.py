"""What ``check`` costs: twenty variants, each of a wheel, a pull request and a patch set, all
accepted and in one store."""

import json
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench.measure import Row, alternate
from tests.claims import Claims
from tests.commands import ROOT, Builder, empty_store
from tests.plugins.requires import missing

_COUNT = 20


def check(claims: Claims, times: int) -> list[Row]:
    """``builder check``, with everything at hand that it looks at."""
    if why := missing("git", "unshare"):
        claims.not_run("checking variants", why)
        return []
    with TemporaryDirectory(prefix="builder-bench-") as temporary:
        builder = _accepted(Path(temporary))
        found = json.loads(builder.run("check", "--json").stdout)["findings"]
        errors = [item for item in found if item["severity"] == "error"]
        claims.holds("a check of what was accepted finds no error", not errors, str(errors[:1]))
        medians = alternate({"ours": lambda _: builder.run("check").seconds}, times)
    what = f"check, {_COUNT} variants"
    return [Row(what=what, ours=medians["ours"], limit=1.0, peers={})]


def _accepted(place: Path) -> Builder:
    """The demo, as twenty variants."""
    project = place / "project"
    for name in ("lockfiles", "overlays", "demo"):
        shutil.copytree(ROOT / name, project / name, ignore=shutil.ignore_patterns("images"))
    shutil.copy(ROOT / "builder.yaml", project)
    recipe = (ROOT / "variants/demo.yaml").read_text()
    (project / "variants").mkdir()
    names = [f"demo-{number}" for number in range(_COUNT)]
    for name in names:
        own = recipe.replace("\nimage:\n", f"\nimage:\n  user: {name}\n")
        (project / f"variants/{name}.yaml").write_text(own)
    builder = Builder(store=empty_store(place / "store"), project=project)
    builder.run("accept", *names)
    return builder
