"""Sub-tile shapes."""

PAD = 32


def padded(n):
    return -(-n // PAD) * PAD
