"""What is said of an image, as bytes that can be signed. Pure: no key, no registry, no clock.

    dsse        the envelope (DSSE): a payload, its type, signatures over both
    statement   what the payload says of which subjects (in-toto Statement v1)

What is said of an image that was built is made in :mod:`builder.statements`. Readers here are
strict: what two readers could understand differently is refused.
"""
