"""What a commit of the Genesis patch set says of itself, read and never run.

Its allowlist and its patch registry are literals in Python source: they are taken out of the
syntax tree. Nothing of a patch set is ever imported here.

::

    read_facts   the files of a payload to its Facts         (kept beside the payload's tree)
    judge        an allowlist and a base to a Judgement      (is this build of vLLM listed?)
    lint         an environment to complaints                (unknown flags, conflicts, ...)

Where each era of the repository keeps what is a table: :mod:`builder.genesis.eras`.
"""

from builder.genesis.allowlist import Allowlist, Judgement, Listing, Presence, judge
from builder.genesis.eras import ERAS, PLUGIN_GROUP, PLUGIN_NAME, Era, era_of
from builder.genesis.facts import Facts, Reading, read_facts
from builder.genesis.lint import Complaint, Rule, lint
from builder.genesis.registry import Patch
from builder.genesis.switches import Switched, switched

__all__ = [
    "ERAS",
    "PLUGIN_GROUP",
    "PLUGIN_NAME",
    "Allowlist",
    "Complaint",
    "Era",
    "Facts",
    "Judgement",
    "Listing",
    "Patch",
    "Presence",
    "Reading",
    "Rule",
    "Switched",
    "era_of",
    "judge",
    "lint",
    "read_facts",
    "switched",
]
