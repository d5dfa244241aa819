"""The world behind the Protocols of ``builder.ports``. Each module imports what it needs itself."""
