"""What is said of an image, as bytes that can be signed. Pure: no key, no registry, no clock.

    dsse        the envelope (DSSE): a payload, its type, signatures over both
    statement   what the payload says of which subjects (in-toto Statement v1)
    provenance  how the image was made (SLSA provenance v1), and every step of it (our predicate)
    sbom        what is in it (CycloneDX), with our patches as its pedigree

Readers here are strict: what two readers could understand differently is refused.
"""
