"""Whether an image is what somebody we trust says it is. No signature is made here.

    vouched   what each key vouches for: signatures checked first, what they say read afterwards
    chain     an image held to its manifest statement: documents, layers in order, files
    verify    both, and that nothing that is demanded is missing

In this order, and each step works only on what the one before let pass: the bytes of a signature's
payload are parsed when a key of ours has signed them, and the image's own documents are looked at
when they have the digest that was signed.
"""
