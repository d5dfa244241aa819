"""Whose signatures count, and for what: ``trust.yaml``. Pure: no key, no clock, no file.

    names        files, types, roles
    model        the policy as a value: keys, roles, scopes
    codec        its YAML, read strictly
    scope        which repositories a role may sign images for
    signatures   signatures beside a file: one envelope a line
    chain        from the version that a machine accepted to the one that is there
    judge        who signed, held to the policy
    waivers      exceptions of a project, held to the policy
    draft        a first version, and the next one
    export       the policy in the words of other tools

The signed bytes of a policy are those of its file: nobody who verifies writes it anew. But for its
number, nothing of it is used before the version before it has vouched for it.
"""
