"""TLS and proxies: what the environment and the configuration say about connections."""

import datetime as dt
import ipaddress
import socket
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from builder.adapters.registry.configuration import HostConfiguration
from builder.errors import AuthError, NetworkError
from builder.oci import OCI_MANIFEST
from builder.reference import Reference
from tests.registry.conftest import Clock, DockerLogin, MakeClient
from tests.registry.images import tiny_image
from tests.standin.dripping import FIELDS, dripping
from tests.standin.registry import Reply, StandIn, stand_in

IMAGE = tiny_image()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a self-signed certificate for 127.0.0.1, in one PEM file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = dt.datetime.now(dt.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + signed.public_bytes(serialization.Encoding.PEM)
    )
    return path


@pytest.fixture
def secure(certificate: Path) -> Iterator[StandIn]:
    """A registry behind TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with stand_in(context) as server:
        server.add_manifest("team/app", IMAGE.manifest.raw, media_type=OCI_MANIFEST, tag="t")
        yield server


def tag(server: StandIn) -> Reference:
    return Reference.parse(f"{server.host}/team/app:t")


def test_the_certificates_of_ca_file_are_trusted(
    make_client: MakeClient, secure: StandIn, certificate: Path
) -> None:
    host = HostConfiguration(plain_http=False, ca_file=certificate)
    client = make_client(hosts={secure.host: host})
    assert client.resolve(tag(secure)).digest == IMAGE.manifest.digest


def test_a_certificate_that_is_not_trusted_ends_it_at_once(
    make_client: MakeClient, secure: StandIn, clock: Clock
) -> None:
    client = make_client(hosts={secure.host: HostConfiguration(plain_http=False)})
    with pytest.raises(NetworkError) as caught:
        client.resolve(tag(secure))
    assert caught.value.message == (
        f"{tag(secure)}: https://{secure.host}/v2/team/app/manifests/t: its certificate is not"
        " trusted: self-signed certificate"
    )
    assert caught.value.hint == (
        "ca_file names the certificates to trust; plain_http is for registries without TLS"
    )
    assert (secure.calls, clock.naps) == ([], [])


def test_a_head_that_comes_byte_by_byte_ends_under_tls_too(
    make_client: MakeClient, certificate: Path
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with dripping(FIELDS, tls=context) as server:
        host = HostConfiguration(plain_http=False, ca_file=certificate, read_timeout=1.0)
        with pytest.raises(NetworkError, match=r"no whole answer within 2 s"):
            make_client(hosts={server.host: host}).tags(Reference.parse(f"{server.host}/a/b"))
        assert len(server.asked) == 1


def test_a_registry_behind_tls_does_not_redirect_to_plain_http(
    make_client: MakeClient, secure: StandIn, other: StandIn, certificate: Path
) -> None:
    location = {"Location": f"http://{other.host}/x?signature=secret"}
    secure.on("HEAD", ".*", Reply(status=307, headers=location))
    host = HostConfiguration(plain_http=False, ca_file=certificate)
    with pytest.raises(NetworkError) as caught:
        make_client(hosts={secure.host: host}).resolve(tag(secure))
    assert caught.value.message == (
        f"{tag(secure)}: https://{secure.host}/v2/team/app/manifests/t leads from https to"
        f" http://{other.host}/x, refused"
    )
    assert other.calls == []


def test_loopback_is_not_asked_of_a_proxy_and_others_are(
    make_client: MakeClient,
    registry: StandIn,
    other: StandIn,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for server in (registry, other):
        server.add_manifest("team/app", IMAGE.manifest.raw, media_type=OCI_MANIFEST, tag="t")
    monkeypatch.setenv("http_proxy", f"http://{other.host}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    client = make_client(hosts={"registry.example": HostConfiguration(plain_http=True)})
    client.resolve(tag(registry))
    assert (len(registry.calls), other.calls) == (1, [])
    client.resolve(Reference.parse("registry.example/team/app:t"))
    assert other.calls[0].headers["host"] == "registry.example"


def test_no_proxy_holds_and_a_proxy_gets_its_credentials(
    make_client: MakeClient, other: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    other.add_manifest("team/app", IMAGE.manifest.raw, media_type=OCI_MANIFEST, tag="t")
    monkeypatch.setenv("HTTP_PROXY", f"http://alice:secret@{other.host}")
    monkeypatch.setenv("NO_PROXY", "direct.invalid")
    plain = HostConfiguration(plain_http=True)
    client = make_client(hosts={"registry.example": plain, "direct.invalid": plain})
    client.resolve(Reference.parse("registry.example/team/app:t"))
    assert [call.headers["proxy-authorization"] for call in other.calls] == [
        "Basic YWxpY2U6c2VjcmV0"
    ]
    with pytest.raises(NetworkError, match="its name does not resolve"):
        client.resolve(Reference.parse("direct.invalid/team/app:t"))
    assert len(other.calls) == 1


@pytest.mark.parametrize("name", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"])
def test_the_certificates_of_the_environment_are_trusted(
    make_client: MakeClient,
    secure: StandIn,
    certificate: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    for other in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, str(certificate))
    client = make_client(hosts={secure.host: HostConfiguration(plain_http=False)})
    assert client.resolve(tag(secure)).digest == IMAGE.manifest.digest


def test_certificates_that_are_not_there_are_named_as_such(
    make_client: MakeClient, secure: StandIn, tmp_path: Path
) -> None:
    host = HostConfiguration(plain_http=False, ca_file=tmp_path / "none.pem")
    with pytest.raises(NetworkError) as caught:
        make_client(hosts={secure.host: host}).resolve(tag(secure))
    assert caught.value.message == (
        f"{tag(secure)}: https://{secure.host}/v2/team/app/manifests/t: no such file or directory"
    )


def test_a_client_that_is_closed_is_so_whoever_holds_its_errors(make_client: MakeClient) -> None:
    """Responses, which errors lead to, keep what urllib3 itself would close."""
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        server.settimeout(10)
        client = make_client()

        def ask() -> NetworkError:
            with pytest.raises(NetworkError) as caught:
                client.tags(Reference.parse(f"127.0.0.1:{server.getsockname()[1]}/team/app:t"))
            return caught.value

        asking = pool.submit(ask)
        connection, _ = server.accept()
        with connection:
            connection.settimeout(10)
            assert connection.recv(1 << 16).startswith(b"GET /v2/team/app/tags/list")
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\n{}")
            error = asking.result()
            connection.setblocking(False)
            with pytest.raises(BlockingIOError):  # kept for the next question
                connection.recv(1)
            client.close()
            connection.settimeout(10)
            assert connection.recv(1) == b""
    assert error.__traceback__ is not None


def test_cookies_are_not_kept(make_client: MakeClient, registry: StandIn) -> None:
    registry.add_manifest("team/app", IMAGE.manifest.raw, media_type=OCI_MANIFEST, tag="t")
    registry.on("HEAD", ".*", Reply(status=500, headers={"Set-Cookie": "id=1; Path=/"}))
    make_client().resolve(tag(registry))
    assert "cookie" not in registry.calls[1].headers


def test_credentials_of_the_hub_do_not_go_to_its_replacement(
    make_client: MakeClient, registry: StandIn, docker_config: DockerLogin
) -> None:
    registry.on("HEAD", ".*", Reply(status=401, headers={"WWW-Authenticate": "Basic"}))
    client = make_client(
        docker_config=docker_config({"https://index.docker.io/v1/": "alice:secret"}),
        hosts={"docker.io": HostConfiguration(location=registry.host)},
    )
    with pytest.raises(AuthError) as caught:
        client.resolve(Reference.parse("ubuntu:1"))
    assert caught.value.message == (
        f"docker.io/library/ubuntu:1: {registry.host} wants a user name and a password"
    )
    assert len(registry.calls) == 1
