"""Keep what a variant needs from outside in a place of ours.

::

    pins      which pins of the lock those are
    parcel    a pin as documents and blobs: a base as the image that it is, the rest as artifacts
    place     where they go: a repository of a registry, or an OCI layout in the project
    keep      each parcel to the place, blobs first; then the place into the lock

A blob that is there is not sent again, so that a run that was broken off goes on where it stood.
Nothing of a base stops in the store: it goes from where it is to where it is kept.
"""
