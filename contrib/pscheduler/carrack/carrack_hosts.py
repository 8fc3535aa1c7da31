"""Hosts of a test of the network: how carrack reaches them, and from which address of this host."""
import ipaddress
import re
import socket

from carrack_tool import carrack

# As pScheduler takes names of hosts.
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9-]{0,62}(\.[A-Za-z0-9][A-Za-z0-9-]{0,62})*\.?")
# The port of a node that names none.
PORT = "7420"


def address_of(text):
    """An IP address; None if the text is none."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def host(spec, name):
    """A host of a specification; ValueError if it is none, None if the specification has none."""
    text = spec.get(name)
    if text is None:
        return None
    if not isinstance(text, str) or not (NAME.fullmatch(text) or address_of(text)):
        raise ValueError(f"{name} {text!r} is no host")
    return text


def needed(spec, name):
    """The same of a host that a specification must have; ValueError if it has none."""
    found = host(spec, name)
    if found is None:
        raise ValueError(f"Missing {name}")
    return found


def version(spec):
    """The version of IP that a specification asks for; None if either will do."""
    asked = spec.get("ip-version")
    if asked not in (None, 4, 6):
        raise ValueError(f"ip-version {asked!r} is neither 4 nor 6")
    return asked


def place(name, port=None):
    """A host as carrack is given it: a node if a port is named or a token is kept for it, else by ssh."""
    address = address_of(name)
    typed = f"[{name}]" if address and address.version == 6 else name
    if port:
        return f"carrack://{typed}:{port}"
    known = name.lower().rstrip(".")
    if address:
        known = f"[{address}]" if address.version == 6 else str(address)
    code, out, _ = carrack(["token", "list"])
    kept = [node.rpartition(":") for node in out.splitlines()] if code == 0 else []
    ports = sorted((port for node, _, port in kept if node == known), key=lambda port: (port != PORT, port))
    return f"carrack://{typed}:{ports[0]}" if ports else f"{typed}:"


def bind(far, own, asked):
    """The words that have connections leave from the test's own address, or by the version of IP that it asks for.

    ValueError if there is no such address.
    """
    if own is None and asked is None:
        return []
    theirs = resolved(far, asked)
    ours = resolved(own, asked) if own else []
    pairs = [(here, there) for there in theirs for here in ours if here.version == there.version]
    if own and not pairs:
        raise ValueError(f"{own} and {far} have no version of IP in common")
    # A host's own name often stands for its loopback, which leads nowhere else.
    fitting = [here for here, there in pairs if here.is_loopback == there.is_loopback]
    if fitting:
        return [f"--bind={fitting[0]}"]
    return [] if asked is None else [f"--bind={leaving_for(theirs[0])}"]


def resolved(name, asked):
    """The addresses of a host, the preferred one first."""
    family = {None: socket.AF_UNSPEC, 4: socket.AF_INET, 6: socket.AF_INET6}[asked]
    try:
        found = socket.getaddrinfo(name, None, family, socket.SOCK_STREAM)
    except OSError:
        kind = "address" if asked is None else f"IPv{asked} address"
        raise ValueError(f"{name} has no {kind}")
    # An address of one link has the name of that link behind it.
    return [ipaddress.ip_address(one[4][0].partition("%")[0]) for one in found]


def leaving_for(address):
    """The address of this host from which packets for another leave."""
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            # Sends nothing: it asks for the route.
            probe.connect((str(address), 9))
        except OSError as error:
            raise ValueError(f"no route leads to {address}: {error}")
        return probe.getsockname()[0]
