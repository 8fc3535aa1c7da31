"""Where a service is, which key it must show, and the token of a login there: as the command line finds them."""

from __future__ import annotations

import hashlib
import ipaddress
import os
import pathlib
import re
import socket
import ssl
import tomllib
from dataclasses import dataclass

from .errors import KeyMismatch

DEFAULT_PORT = 7420
SYSTEM_SOCKET = "/run/carrack/service.sock"


@dataclass(frozen=True)
class Target:
    """A service: at a Unix socket, by TLS to a pinned key, or in the clear on this host."""

    path: str | None = None
    host: str = "localhost"
    port: int = DEFAULT_PORT
    is_tls: bool = False
    pin: str | None = None

    @staticmethod
    def parse(text: str) -> Target:
        """Parses `https://HOST[:PORT][#sha256:…]`, `http://127.0.0.1[:PORT]` or the path of a socket."""
        whole = re.fullmatch(r"(https?)://(?:\[([0-9A-Fa-f:.]+)\]|([^\[\]:/?#@\s]+))(?::(\d+))?/?(?:#(.*))?", text)
        if whole is None:
            path = text.removeprefix("unix:")
            if not path or "://" in path:
                raise ValueError(f"{text!r} is neither https://HOST:PORT nor the path of a socket")
            return Target(path=path)
        scheme, v6, name, port, pin = whole.groups()
        host = v6 or name
        if scheme == "http" and host not in ("localhost", "::1") and not re.fullmatch(r"127(\.\d+){3}", host):
            raise ValueError(f"{text!r}: http:// is for this host alone; another one is reached by https://")
        if pin is not None and not re.fullmatch(r"sha256:[0-9a-f]{64}", pin.lower()):
            raise ValueError(f"{text!r}: a pin is #sha256: and 64 hexadecimal digits")
        return Target(None, host, int(port or DEFAULT_PORT), scheme == "https", pin.lower() if pin else None)

    @property
    def known_as(self) -> str:
        """HOST:PORT, as lists of keys and directories of tokens have it."""
        host = f"[{ipaddress.ip_address(self.host)}]" if ":" in self.host else self.host.lower().removesuffix(".")
        return "localhost" if self.path else f"{host}:{self.port}"

    def __str__(self) -> str:
        return self.path or f"http{'s' if self.is_tls else ''}://{self.known_as}"

    def connect(self, timeout: float | None) -> socket.socket:
        """A connection. By TLS, nothing is sent before the key was compared."""
        if self.path:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                connection.settimeout(timeout)
                connection.connect(self.path)
            except BaseException:
                connection.close()
                raise
            return connection
        plain = socket.create_connection((self.host, self.port), timeout)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not self.is_tls:
            return plain
        # A service signs its certificate itself: its key is what is known of it. TLS 1.3 proves that it owns the key.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.set_alpn_protocols(["http/1.1"])
        try:
            wrapped = context.wrap_socket(plain, server_hostname=self.host)
        except BaseException:
            plain.close()
            raise
        shown = "sha256:" + hashlib.sha256(public_key(wrapped.getpeercert(binary_form=True) or b"")).hexdigest()
        if shown == self.pin:
            return wrapped
        wrapped.close()
        if self.pin is None:
            hint = f"compare this with the fingerprint that the service has printed, then use {self}#{shown}"
            raise KeyMismatch(f"nothing is known of {self}, which shows the key {shown}", hints=[hint])
        hint = "if the service was set up anew, use its new fingerprint; if not, somebody is in between"
        raise KeyMismatch(f"{self} shows another key than the pinned one: {shown}", hints=[hint])


def public_key(certificate: bytes) -> bytes:
    """The SubjectPublicKeyInfo of an X.509 certificate: what a fingerprint is of (RFC 5280, DER)."""

    def value(at: int) -> tuple[int, int]:
        """Where the content of the value at an offset begins and ends."""
        length, start = certificate[at + 1], at + 2
        if length & 0x80:
            start += length & 0x7F
            length = int.from_bytes(certificate[at + 2 : start], "big")
        return start, start + length

    at, _ = value(value(0)[0])  # within the certificate, within what is signed of it
    if certificate[at] == 0xA0:  # the version, which may be left out
        _, at = value(at)
    for _ in ("serial number", "signature", "issuer", "validity", "subject"):
        _, at = value(at)
    return certificate[at : value(at)[1]]


def find(service: str | None) -> tuple[Target, str | None]:
    """The service that is meant, with its key and the token of `carrack login` there.

    That is `service`, else `CARRACK_SERVICE`, else the one of this host, else that of the last login.
    """
    target = Target.parse(service) if service else _usual()
    kept = _configuration()
    if target.is_tls and target.pin is None:
        pins = dict(line.split()[:2] for line in _lines(kept / "known_services"))
        target = Target(None, target.host, target.port, True, pins.get(target.known_as))
    return target, None if target.path else _secret(kept / "services" / target.known_as)


def _usual() -> Target:
    if named := os.environ.get("CARRACK_SERVICE"):
        return Target.parse(named)
    if moved := os.environ.get("CARRACK_SOCKET"):
        return Target(path=moved)
    own = _base("XDG_STATE_HOME", ".local/state") / "service"
    directory = os.environ.get("CARRACK_STATE_DIR")
    places = [pathlib.Path(directory, "service.sock")] if directory else []
    places += [*_of_file(), own / "service.sock", pathlib.Path(SYSTEM_SOCKET)]
    found = next((place for place in places if place.exists()), None)
    if found is None and (remembered := "".join(_lines(_configuration() / "service"))):
        return Target.parse(remembered)
    return Target(path=str(found or own / "service.sock"))


def _of_file() -> list[pathlib.Path]:
    """The socket that carrack.toml names."""
    usual = [_configuration() / "carrack.toml", pathlib.Path("/etc/carrack/carrack.toml")]
    named = os.environ.get("CARRACK_CONFIG")
    file = pathlib.Path(named) if named else next((path for path in usual if path.exists()), usual[0])
    try:
        service = tomllib.loads(file.read_text()).get("service", {})
    except (OSError, ValueError):
        return []  # the service itself complains of it
    if "socket" in service:
        return [pathlib.Path(service["socket"])]
    return [pathlib.Path(service["state_dir"], "service.sock")] if "state_dir" in service else []


def _base(variable: str, below_home: str) -> pathlib.Path:
    named = os.environ.get(variable, "")
    return pathlib.Path(named if named.startswith("/") else pathlib.Path.home() / below_home, "carrack")


def _configuration() -> pathlib.Path:
    return _base("XDG_CONFIG_HOME", ".config")


def _secret(path: pathlib.Path) -> str | None:
    if path.exists() and path.stat().st_mode & 0o077:
        raise PermissionError(f"{path}: others can read or write it: chmod 600 {path}")
    return "".join(_lines(path)) or None


def _lines(path: pathlib.Path) -> list[str]:
    try:
        return [line.strip() for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]
    except FileNotFoundError:
        return []
