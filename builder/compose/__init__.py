"""Compose files whose images are pinned by digest, without any other byte of them changed.

::

    document   bytes to trees of nodes, each scalar with its place
    service    trees to services: where each one's image stands, and what it names
    target     a name (a variant, a pinned base) to a reference with its digest
    pin        services and targets to edits of single scalars; proved by reading the result
    judge      services and targets to what is wrong with them

    include    files, and those that they include, to one project
    composition    a project to its services, each over all its places
    container  a service to words, environment and mounts
    weights    words to the models that they name

Files are read as Docker Compose reads them (merge keys, anchors, ``extends`` within a file, several
documents), and nothing is ever written out again from what was read.
"""
