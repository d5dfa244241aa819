"""Signatures in the forms that other tools read, as bytes. Pure: no key, no registry.

    simple_signing   the payload of cosign's older signatures, which containers/image reads, too
    bundle           an envelope with what it takes to verify it: Sigstore bundle v0.3
    carriers         the OCI manifests that carry signatures, and the tags that name them
    listing          manifests and indexes to which entries are added, the others left as they are

The readers are strict: what two readers could understand differently is refused. What a reader
gives is what was written, and true only once somebody has verified a signature over it.
"""
