"""The world: what stands behind the Protocols of ``builder.ports``.

Time, environment, network and processes are touched here and in ``builder.cli`` only. Each module
imports its own heavy libraries, so that nothing is paid for what a command does not use.
"""
