"""The ways to a service: socket, TLS with its fingerprint, in the clear; keys that are not the pinned one; tokens."""

from __future__ import annotations

import hashlib
import os
import pathlib
import ssl
import subprocess

import pytest
from support import Relay, Service

from carrack import Client, Unreachable, errors
from carrack._target import Target, public_key

PIN = "sha256:" + "0" * 64


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("/run/carrack.sock", Target(path="/run/carrack.sock")),
        ("unix:x.sock", Target(path="x.sock")),
        ("https://data.example.org", Target(None, "data.example.org", 7420, True)),
        ("https://data.example.org:443/", Target(None, "data.example.org", 443, True)),
        (f"https://[::1]:8#{PIN}", Target(None, "::1", 8, True, PIN)),
        ("http://localhost:99", Target(None, "localhost", 99)),
        ("http://[::1]", Target(None, "::1", 7420)),
    ],
)
def test_service_is_parsed_from_what_people_type(text: str, target: Target) -> None:
    assert Target.parse(text) == target


@pytest.mark.parametrize(
    "text",
    ["unix:", "ftp://host", "https://", "https://a/b", "https://u@h", "http://example.org", "https://h#sha256:1"],
)
def test_what_is_no_service_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="http|pin|socket"):
        Target.parse(text)


def test_tls_needs_the_right_fingerprint_and_a_token(shared: Service) -> None:
    token, _ = shared.token("tasks", "view")
    with Client(shared.url, token=token) as client:
        assert client.whoami().via == "token"
    with Client(shared.url) as client, pytest.raises(errors.Unauthenticated):
        client.whoami()


def test_another_key_and_an_unknown_one_are_told_nothing(shared: Service) -> None:
    seen: list[bytes] = []
    relay = Relay(shared.port, lambda _, head: seen.append(head))
    plain = relay.url.replace("http", "https")
    for service, word in [(f"{plain}#{PIN}", "another key"), (plain, "nothing is known")]:
        with Client(service, token="carrack_secret") as client, pytest.raises(errors.KeyMismatch, match=word) as told:
            client.whoami()
        assert shared.said["service"]["fingerprint"] in str(told.value)
    relay.close()
    assert seen == []


def test_public_key_is_what_openssl_finds_in_a_certificate(tmp_path: pathlib.Path) -> None:
    for kind in (["ec", "-pkeyopt", "ec_paramgen_curve:P-256"], ["rsa:2048"], ["ed25519"]):
        made = [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            *kind,
            "-nodes",
            "-subj",
            "/CN=x",
            "-keyout",
            "key",
            "-out",
            "cert",
        ]
        subprocess.run(made, cwd=tmp_path, check=True, capture_output=True)
        der = ssl.PEM_cert_to_DER_cert((tmp_path / "cert").read_text())
        own = subprocess.run(
            ["openssl", "pkey", "-in", "key", "-pubout", "-outform", "DER"], cwd=tmp_path, capture_output=True
        )
        assert hashlib.sha256(public_key(der)).digest() == hashlib.sha256(own.stdout).digest()


def test_login_of_the_command_line_is_taken(
    shared: Service, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, _ = shared.token("view")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "none"))
    kept = tmp_path / "carrack/services" / f"127.0.0.1:{shared.port}"
    kept.parent.mkdir(parents=True)
    kept.write_text(token + "\n")
    kept.chmod(0o600)
    (tmp_path / "carrack/service").write_text(f"https://127.0.0.1:{shared.port}\n")
    fingerprint = shared.said["service"]["fingerprint"]
    (tmp_path / "carrack/known_services").write_text(f"127.0.0.1:{shared.port} {fingerprint}\n")
    with Client() as client:
        assert client.whoami().via == "token"
    kept.chmod(0o644)
    with pytest.raises(PermissionError, match="chmod 600"):
        Client()


def test_service_of_this_host_is_found(
    shared: Service, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    assert str(Client().target) == shared.socket
    monkeypatch.setenv("CARRACK_SERVICE", shared.clear)
    assert str(Client().target) == shared.clear
    monkeypatch.delenv("CARRACK_SERVICE")
    monkeypatch.setenv("CARRACK_STATE_DIR", os.path.dirname(shared.socket))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert str(Client().target) == shared.socket
    monkeypatch.delenv("CARRACK_STATE_DIR")
    (tmp_path / "carrack.toml").write_text(f"[service]\nsocket = {shared.socket!r}\n")
    monkeypatch.setenv("CARRACK_CONFIG", str(tmp_path / "carrack.toml"))
    assert str(Client().target) == str(shared.socket)


def test_nobody_there_is_told_after_the_patience(tmp_path: pathlib.Path) -> None:
    with pytest.raises(Unreachable, match="no service answers") as told:
        Client(str(tmp_path / "none.sock"), patience=0.1).submit("random:1", "null:", submission_id="mine")
    assert told.value.submission_id == "mine"
    assert isinstance(told.value, ConnectionError)


def test_another_program_that_answers_is_no_service() -> None:
    import http.server
    import threading

    class Other(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # noqa: N802
            self.send_response(502 if "whoami" in self.path else 200)
            self.end_headers()
            self.wfile.write(b"<html>")

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Other)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    client = Client(f"http://127.0.0.1:{server.server_port}", patience=0.1)
    for ask in (client.whoami, lambda: client.task("x")):
        with pytest.raises(errors.BadAnswer):
            ask()
    client.close()
    server.shutdown()
    server.server_close()
