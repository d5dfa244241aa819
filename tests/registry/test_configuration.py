"""Where registries are."""

from pathlib import Path

import pytest

from builder.adapters.registry.configuration import (
    Endpoint,
    HostConfiguration,
    RegistryConfiguration,
)
from builder.errors import ProjectError


@pytest.mark.parametrize(
    ("registry", "url"),
    [
        pytest.param("docker.io", "https://registry-1.docker.io/v2/a/b", id="the hub"),
        pytest.param("ghcr.io", "https://ghcr.io/v2/a/b", id="any other"),
        pytest.param("registry.example:5000", "https://registry.example:5000/v2/a/b", id="a port"),
        pytest.param("localhost:5000", "http://localhost:5000/v2/a/b", id="localhost"),
        pytest.param("127.3.2.1", "http://127.3.2.1/v2/a/b", id="IPv4 loopback"),
        pytest.param("[::1]:5000", "http://[::1]:5000/v2/a/b", id="IPv6 loopback"),
        pytest.param("10.0.0.1", "https://10.0.0.1/v2/a/b", id="another address"),
        pytest.param("localhost.example", "https://localhost.example/v2/a/b", id="like localhost"),
    ],
)
def test_a_registry_nobody_configured(registry: str, url: str) -> None:
    assert RegistryConfiguration().origin(registry).url("a", "b") == url


def test_mirrors_come_in_order_and_the_origin_last_with_settings_of_their_own() -> None:
    configuration = RegistryConfiguration(
        hosts={
            "docker.io": HostConfiguration(
                mirrors=("cache.example/hub", "127.0.0.1:5000"), location="registry.example"
            ),
            "cache.example": HostConfiguration(plain_http=True),
        }
    )
    readers = configuration.readers("docker.io", by_digest=True)
    assert [reader.url("library/x", "") for reader in readers] == [
        "http://cache.example/v2/hub/library/x/",
        "http://127.0.0.1:5000/v2/library/x/",
        "https://registry.example/v2/library/x/",
    ]
    assert [reader.mirror for reader in readers] == [True, True, False]
    assert configuration.readers("docker.io", by_digest=False) == readers[2:]


def test_settings_of_a_registry_hold_for_its_location_and_yield_to_its_own_entry() -> None:
    hub = HostConfiguration(location="registry.example/hub", plain_http=True, ca_file=Path("a"))
    configuration = RegistryConfiguration(hosts={"docker.io": hub})
    assert configuration.origin("docker.io") == Endpoint(
        registry="docker.io", host="registry.example", prefix="hub", scheme="http", mirror=False
    )
    assert configuration.server("registry.example") is hub
    own = HostConfiguration(ca_file=Path("b"))
    both = RegistryConfiguration(hosts={"docker.io": hub, "registry.example": own})
    assert both.server("registry.example") is own
    assert both.origin("docker.io").scheme == "https"
    assert configuration.server("storage.example") == HostConfiguration()


@pytest.mark.parametrize(
    "location",
    ["https://cache.example", "", "/x", "user@host", "host:port", "host/a?b", "a b", "host//x"],
)
def test_a_location_that_is_none(location: str) -> None:
    with pytest.raises(ProjectError) as caught:
        HostConfiguration(mirrors=(location,))
    assert caught.value.message == f"mirrors: expected host[:port][/prefix], got {location!r}"
    with pytest.raises(ProjectError):
        HostConfiguration(location=location)


def test_a_time_out_must_be_positive() -> None:
    with pytest.raises(ProjectError) as caught:
        HostConfiguration(read_timeout=0)
    assert caught.value.message == "read_timeout: expected seconds above 0, got 0"
