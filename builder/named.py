"""The images of a store: kept with the record of their build, and named by their variants."""

from builder import canonical, notes
from builder.build_record import Build, describe
from builder.digest import Digest
from builder.errors import ProjectError
from builder.oci import Platform
from builder.ports import Store
from builder.project import Project


def reference_name(variant: str, platform: Platform) -> str:
    """The name of an image in the store's index: the variant's, with the platform where it is not
    the usual one."""
    usual = Platform("linux", "amd64")
    return variant if platform == usual else f"{variant}-{str(platform).replace('/', '-')}"


def keep(build: Build, *, store: Store) -> None:
    """Put config, manifest and record into the store: what ``explain`` needs, also of a build that
    is not what was accepted."""
    image = build.image
    store.put(image.config)
    store.put(image.manifest.raw)
    raw = canonical.encode(describe(build))
    if store.note(notes.IMAGE, image.digest.hex) != raw:
        store.take_note(notes.IMAGE, image.digest.hex, raw)


def name_it(build: Build, *, store: Store) -> None:
    """Point the variant's name at its image: the last, visible act."""
    image = build.image
    reference = reference_name(build.variant.name, image.platform)
    if store.references().get(reference) != image.manifest.descriptor:
        store.set_reference(reference, image.manifest.descriptor)


def kept(project: Project, name: str, *, store: Store, platform: Platform) -> Digest:
    """The digest under which the last build of a variant stands in the store.

    Raises:
        ProjectError: It was not built on this machine.
    """
    project.variant(name)
    descriptor = store.references().get(reference_name(name, platform))
    if descriptor is None:
        raise ProjectError(
            f"variant {name!r} was not built for {platform} yet", hint=f"builder build {name}"
        )
    return descriptor.digest
