"""An OCI distribution registry over ``urllib3``: :class:`builder.ports.Registry`.

What a call runs through, top down::

    client          the port: manifests, questions, which endpoints are asked in which order
    download        blobs: streamed, hashed, resumed
    upload          blobs: asked for, mounted, sent
    session         one upload under way: one PUT, or chunks that resume
    put             manifests on their way out
    tags            all tags of a repository, page by page
    referrers       what refers to a manifest, page by page, or from the tag that stands in
    manifests       what headers say about a manifest, checked
    transport       one request: retries, redirects, waiting
    auth            the answer to a 401: tokens, Basic
    credentials     docker's config.json and its credential helpers
    connections     what is kept open; proxies and certificates of the environment
    failures        what an answer or a broken connection means, as a typed error
    configuration   hosts, mirrors, time-outs, as a frozen value of the caller's

Nothing is imported here: ``urllib3`` is paid for by those who import ``client``.

Source: OCI distribution-spec v1.1; Docker Registry "Token Authentication Specification".
"""
