"""Keys: what a signature is checked with, what it is made with, and how a private key is kept.

ECDSA on P-256 with SHA-256 and nonces of RFC 6979, so that the same bytes give the same signature;
Ed25519 for those who want it. A key is named by its OpenSSH fingerprint, in key lists as in
envelopes: other names make some readers pass over a good signature.
"""
