"""Where other people's code runs: in namespaces of Linux, or in a container of a Docker Engine.

Both have the same process 1 (:mod:`builder.adapters.sandbox.inside`), so that a job finds the same
environment, the same limits and the same refusals in both.
"""

from builder.adapters.sandbox.choice import choose
from builder.adapters.sandbox.engine import EngineSandbox
from builder.adapters.sandbox.namespaces import NamespaceSandbox

__all__ = ["EngineSandbox", "NamespaceSandbox", "choose"]
