"""The store on disk: an OCI image layout with memos beside it.

::

    oci-layout              image-spec, image-layout.md: the mark of a layout, version 1.0.0
    index.json              named manifests; entries of other tools are left as they are
    blobs/sha256/HEX        immutable, appear whole
    notes/KIND/KEY          memos, replaced whole
    tmp/                    files under way; what a kill leaves here is nobody's
    locks/NAME              one file a lock name, held with flock
    leases/store            held shared by whoever builds or writes, exclusively by ``gc``

``layout`` has :class:`FileStore`, which is all that a build needs. ``verify``, ``gc`` and ``du``
look after a store; nothing else imports them.
"""

from builder.adapters.store.layout import FileStore

__all__ = ["FileStore"]
