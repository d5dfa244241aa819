"""``builder.yaml``: what a project says about places and machines, and what it lets pass. It never
changes what is built.

Everything in it is optional, and so is the file.
"""
