"""Signatures of images: published in every form that readers know, and collected again.

    place      where they are kept, as a Protocol, and the limits of what is read from there
    found      a signature that lies there: nothing of it is read before a key has verified it
    collect    all signatures of an image in a place
    publish    an image and statements about it signed, in a place
    registry   a repository of a registry as a place

``builder.adapters.store.attachments`` is an OCI layout as a place.

Who signs calls ``publish``, who verifies calls ``collect`` and then, with keys of a policy,
``Found.made_by`` and ``Found.read``. Neither knows of forms, tags or media types.
"""
