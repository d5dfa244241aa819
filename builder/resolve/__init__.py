"""From what a pin follows to what it is: one module a kind of pin.

The only stage that asks what upstream has *now*. Each function takes what a person has at hand (a
tag, a number, a name) or the pin as it is locked, and gives back a complete pin with what there is
to tell about it. Nothing here writes: :mod:`builder.bump` tries a pin before it is written.
"""
