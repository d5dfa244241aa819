"""The world: implementations of :mod:`builder.ports`, each loaded when it is first needed."""
