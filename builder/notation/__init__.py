"""Signatures of the Notary Project, which ``notation`` verifies: made where they are asked for.

    certificate   the certificate of a key, with those that lead to its root, and what it must be
    self_signed   one that a key makes for itself
    envelope      what is signed of an image, and the JWS that it goes into
    attach        published beside an image, and found again there

Nothing else of builder imports this: to read certificates costs more than a build with nothing to
do.

Sources: Notary Project, specifications/signature-specification.md, signature-envelope-jws.md and
signature-specification.md#certificate-requirements.
"""
