"""Private keys in the world: where they lie, where their passwords come from, who else keeps them.

    passwords   from a file, the environment, or a person, who is asked once
    directory   keys by name, in a directory of the user's
    files       read with an eye on who else can, written whole
    keeping     what is written: encrypted, unless somebody insists
    command     a program that signs for a key which it keeps (KMS, HSM)
    signers     from what a person writes to a :class:`builder.keys.signer.Signer`

Passwords and private keys are never given to another program's command line, and stand in no
message, log or JSON.
"""
