"""The test plugins, for the doctests in builder/ and the tests in tests/ alike.

They are named here and not in tests/conftest.py because pytest takes options and settings only
from plugins that it knows before it looks at any test.
"""

from hypothesis import settings

pytest_plugins = (
    "pytester",
    "tests.plugins.requires",
    "tests.plugins.offline",
    "tests.plugins.leftovers",
    "tests.plugins.unchanged",
    "tests.plugins.golden",
    "tests.plugins.interrupts",
)

# How long an example takes is the machine's affair; what has to be quick has a test of its own.
settings.register_profile("untimed", settings.default, deadline=None)
settings.load_profile("untimed")

# Files of projects to be, not of this one.
collect_ignore = ["builder/cli/template"]
