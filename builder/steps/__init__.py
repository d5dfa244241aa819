"""Step kinds: one module each, all of them pure.

A :class:`~builder.steps.request.Request` is a step with its pins looked up. Its ``record`` names
every input by content and goes into the derivation; its ``run`` reads the parent tree through a
view and returns an :class:`~builder.outcome.Outcome`, or raises :class:`~builder.errors.PatchError`
with the verdict.
"""
