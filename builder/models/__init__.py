"""Models: which files of one a deployment needs, and whether those on a disk are what was locked.

``selection`` says which files are pinned, ``shards`` and ``safetensors`` what is in them.
``verify`` compares a ``place`` on a disk with the lock (``hashing``, ``remembered``, ``tensors``);
``fetch`` brings what is lacking, from where ``standing`` says that it can be had. ``checksums`` is
for others who keep lists of their own.
"""
