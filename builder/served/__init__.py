"""The models that services of a compose file load: which pins they are, and where on this machine.

1. A service gives the words of its container, and those the models that it loads (``loads``).
2. A path in the container leads through the mounts to one of this machine; a name at the hub leads
   to the hub's cache in the container, and from there the same way (``mounts``).
3. The pin is that of the repository, or the one that the directory is named after, among those of
   the variant that the service runs, or else of the project (``pins``).

A wrong guess proves nothing wrong: whatever pin is taken, every file is held to it.
"""
