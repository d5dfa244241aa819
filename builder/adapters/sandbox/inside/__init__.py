"""What runs in a sandbox, as its process 1.

These modules are sent as text and run by another Python than ours, without ``site`` and without
this package around them. They import each other and the quick parts of the standard library;
what a start needs is counted in milliseconds.
"""
