"""Models: which files of one a deployment needs, and whether those on a disk are what was locked.

``selection`` says which files are pinned, ``shards`` what a safetensors index names.
"""
