"""Sub-tile shapes."""

PAD = 64


def padded(n):
    return -(-n // PAD) * PAD
