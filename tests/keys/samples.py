"""Keys that everybody knows: those of RFC 6979 (A.2.5) and RFC 8032 (7.1, test 1)."""

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, derive_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from builder.keys.private import PrivateKey

P256 = PrivateKey(
    derive_private_key(
        0xC9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721, SECP256R1()
    ),
    at="RFC 6979",
)
ED25519 = PrivateKey(
    Ed25519PrivateKey.from_private_bytes(
        bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
    ),
    at="RFC 8032",
)

PASSWORD = b"correct horse"
COSIGN_BOX = b"""\
-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----
eyJrZGYiOnsibmFtZSI6InNjcnlwdCIsInBhcmFtcyI6eyJOIjo2NTUzNiwiciI6
OCwicCI6MX0sInNhbHQiOiJqVzVxZUtSd25GWTF5ZVBzMEhWdzJ6OFNQS1RSd0lx
dWZ1Q0FsV3EyTVNnPSJ9LCJjaXBoZXIiOnsibmFtZSI6Im5hY2wvc2VjcmV0Ym94
Iiwibm9uY2UiOiI2WFIwL0tZdUNPOG55c3BFWHJjU1YzOG1vUG0rOG1ORSJ9LCJj
aXBoZXJ0ZXh0IjoiNmQ3L3NDMmQ2ZnJTZVlaRDk4SEV0VllQNGFJQTJ5WWpQTHF1
WFdtQmlkOWpUanJLSHVlS3Zla2VwK0g0c28yRE9BUFU5ODU2V2EycTgyeGFNNEN4
L3hOL0JmQVhJTlVnYnNDUW56SlBoM21iNU5LdG1rL1I0eW1tR281WmlVdjFwZ3FP
R05lSWs3ams5a0RQTnQ3L2EzKy9JVkJlV1Z0MlpkUG8ybXpqdi80Q2JpV2YycDV5
WmpEU0lBSWU4eWhaclBZdXRUQnEzOXhpVGc9PSJ9
-----END ENCRYPTED SIGSTORE PRIVATE KEY-----
"""
"""The key of RFC 6979 under PASSWORD, by ``cosign import-key-pair`` of cosign 3.1.1."""


def no_password() -> bytes:
    """For keys that need none."""
    raise AssertionError("a password was asked for")
