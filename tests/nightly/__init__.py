"""Nights: outcomes, proposals, the matrix, and the workflows that ask for them."""
