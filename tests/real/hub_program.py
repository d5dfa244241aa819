"""What a Python that has huggingface_hub, and nothing of ours, is given to run: jobs as JSON on
stdin, on stdout what came of each. A job is the name of a function here and its arguments."""

import json
import sys
from importlib import import_module
from typing import Any


def revision(hub: Any, repository: str, revision: str) -> list[str]:
    """The name of a model, and the commit that a revision is."""
    info = hub.HfApi().model_info(repository, revision=revision)
    return [info.id, info.sha]


def tree(hub: Any, repository: str, revision: str) -> list[list[Any]]:
    """The files of a commit: path, size, git blob id, sha256 of what is an LFS object."""
    entries = hub.HfApi().list_repo_tree(repository, revision=revision, recursive=True)
    files = [entry for entry in entries if hasattr(entry, "blob_id")]
    return sorted(
        [file.path, file.size, file.blob_id, file.lfs.sha256 if file.lfs else None]
        for file in files
    )


def snapshot(hub: Any, repository: str, **options: Any) -> str:
    """Fetch a model, or find it; where it is."""
    return str(hub.snapshot_download(repository, **options))


def file(hub: Any, repository: str, path: str, **options: Any) -> str:
    """Fetch one file; where it is."""
    return str(hub.HfApi().hf_hub_download(repository, path, **options))


def part(hub: Any, repository: str, path: str, start: int, length: int) -> str:
    """Some bytes of a file, in hex."""
    data: bytes = hub.HfFileSystem().cat_file(
        f"{repository}/{path}", start=start, end=start + length
    )
    return data.hex()


def cache(hub: Any, directory: str) -> list[Any]:
    """The commits of each model in a cache, with their files; and what is odd about it."""
    found = hub.scan_cache_dir(directory)
    held = {
        repository.repo_id: {
            one.commit_hash: sorted(
                str(each.file_path.relative_to(one.snapshot_path)) for each in one.files
            )
            for one in repository.revisions
        }
        for repository in found.repos
    }
    return [held, [str(warning) for warning in found.warnings]]


def digests(hub: Any, repository: str, **options: Any) -> list[Any]:
    """How many files the library's own check has compared, and which are wrong, missing, extra."""
    found = hub.HfApi().verify_repo_checksums(repository, **options)
    wrong = sorted(each["path"] for each in found.mismatches)
    return [found.checked_count, wrong, sorted(found.missing_paths), sorted(found.extra_paths)]


def main() -> None:
    """Do the jobs, one after the other, whatever comes of them."""
    hub = import_module("huggingface_hub")  # the project's own environment does not have it
    for name, arguments in json.load(sys.stdin):
        try:
            said = {"value": globals()[name](hub, **arguments)}
        except Exception as error:  # noqa: BLE001 - an answer like any other
            said = {"error": type(error).__name__, "text": str(error)}
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
