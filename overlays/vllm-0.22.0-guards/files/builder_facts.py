"""What this image was baked for, for whoever looks inside a container."""

CARDS = 2
DRAFT_TOKENS = 3
