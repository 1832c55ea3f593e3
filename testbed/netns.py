"""Network hosts as network namespaces of this process, joined by a bridge: the fabric of the virtual and netns runtimes.

The namespaces have no names: they live as long as this process (and the processes it started in them) holds them, so
nothing is left behind however it ends. Needs root (in the guest everybody is).
"""

import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed import commands
from testbed.errors import SetupError

SUBNET = "198.18.0"
"""RFC 2544's benchmarking range, 198.18.0.0/15: never a user's own network."""

SERVER_ADDRESS = f"{SUBNET}.1"

_CLONE_NEWNET = 0x40000000  # unshare(2)
_SIOCSIFFLAGS, _SIOCSIFADDR, _SIOCSIFNETMASK = 0x8914, 0x8916, 0x891C  # netdevice(7)
_SIOCETHTOOL = 0x8946
_ETHTOOL_STXCSUM, _ETHTOOL_SSG, _ETHTOOL_STSO, _ETHTOOL_SGSO = 0x17, 0x19, 0x1F, 0x24  # linux/ethtool.h
_UP_RUNNING_MULTICAST = 0x1 | 0x40 | 0x1000 | 0x2  # IFF_UP, _RUNNING, _MULTICAST, _BROADCAST
_libc = ctypes.CDLL(None, use_errno=True)


def _checked(status: int, what: str) -> None:
    if status:
        code = ctypes.get_errno()
        raise SetupError(f"{what}: {os.strerror(code)} (network namespaces need root: use sudo, or RUNTIME=virtual)")


@dataclass(frozen=True)
class Host:
    """A network host: a namespace with one interface, eth0. `fd` None is the namespace that this process is in."""

    name: str
    address: str
    fd: int | None

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Sockets and processes made inside belong to this host; sockets stay there afterwards."""
        if self.fd is None:
            yield
            return
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        try:
            _checked(_libc.setns(self.fd, _CLONE_NEWNET), f"cannot enter the namespace of {self.name}")
            try:
                yield
            finally:
                _checked(_libc.setns(home, _CLONE_NEWNET), "cannot return to the first namespace")
        finally:
            os.close(home)


def _new_namespace() -> int:
    """A new namespace's descriptor; the thread is back in its old one afterwards."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        _checked(_libc.unshare(_CLONE_NEWNET), "cannot make a network namespace")
        try:
            return os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        finally:
            _checked(_libc.setns(home, _CLONE_NEWNET), "cannot return to the first namespace")
    finally:
        os.close(home)


def _ifreq(interface: str, rest: bytes) -> bytes:
    return struct.pack("16s24s", interface.encode(), rest)


def _sockaddr(address: str) -> bytes:
    return struct.pack("=HH4s8x", socket.AF_INET, 0, socket.inet_aton(address))


def _interface_up(interface: str, address: str, netmask: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        if address:
            fcntl.ioctl(control, _SIOCSIFADDR, _ifreq(interface, _sockaddr(address)))
            fcntl.ioctl(control, _SIOCSIFNETMASK, _ifreq(interface, _sockaddr(netmask)))
        fcntl.ioctl(control, _SIOCSIFFLAGS, _ifreq(interface, struct.pack("=h", _UP_RUNNING_MULTICAST)))


def set_offloads(interface: str, on: bool) -> None:
    """Off: packets leave an interface as they would leave for a wire, cut to the MTU and with a real checksum.

    On: they may leave as pieces of up to 64 kB, which netem would delay or lose as one.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for command in (_ETHTOOL_STSO, _ETHTOOL_SGSO, _ETHTOOL_SSG, _ETHTOOL_STXCSUM):
            value = ctypes.create_string_buffer(struct.pack("=II", command, on))
            request = bytearray(_ifreq(interface, struct.pack("P", ctypes.addressof(value))))
            fcntl.ioctl(control, _SIOCETHTOOL, request)


def _links(count: int, fds: list[int | None]) -> str:
    """`ip -batch` lines: a bridge without ageing or spanning tree, and a veth pair for each namespace.

    gso_max_segs 1: though its offloads are off, TCP hands its interface two segments at once, which are cut only behind
    the hook where the downlink's channel takes them.
    """
    lines = ["link add bridge type bridge stp_state 0 mcast_snooping 0", "link set bridge up"]
    for number, fd in zip(range(count), fds, strict=True):
        mac = f"02:00:c6:12:00:{number:02x}"
        lines += [
            f"link add port{number} type veth peer name eth0 address {mac} gso_max_segs 1 "
            f"netns /proc/{os.getpid()}/fd/{fd}",
            f"link set port{number} master bridge up",
        ]
    return "\n".join(lines) + "\n"


def _sysctls(values: dict[str, str]) -> None:
    for key, value in values.items():
        path = Path("/proc/sys", *key.split("."))
        try:
            path.write_text(value)
        except OSError as error:
            raise SetupError(f"cannot set {key} to {value!r}: {error.strerror}") from error


@dataclass(frozen=True)
class Fabric:
    """A server and its clients on one Ethernet."""

    server: Host
    clients: dict[str, Host]


def addresses(client_names: list[str]) -> dict[str, str]:
    """The address of each host, by name: the server at .1 and clients from .2 on."""
    return {name: f"{SUBNET}.{number}" for number, name in enumerate(["server", *client_names], start=1)}


@contextmanager
def fabric(client_names: list[str], sysctls: dict[str, str]) -> Iterator[Fabric]:
    """A server and clients at their addresses(), each with `sysctls` set in its namespace. Gone after the `with`."""
    with ExitStack() as stack:

        def namespace() -> int:
            fd = _new_namespace()
            stack.callback(os.close, fd)
            return fd

        switch = Host("switch", "", namespace())
        hosts = [Host(name, address, namespace()) for name, address in addresses(client_names).items()]
        with switch.entered():
            commands.run(["ip", "-batch", "-"], stdin=_links(len(hosts), [host.fd for host in hosts]))
        for host in hosts:
            with host.entered():
                _interface_up("lo", "", "")
                set_offloads("eth0", on=False)
                _interface_up("eth0", host.address, "255.255.255.0")
                _sysctls(sysctls)
        yield Fabric(hosts[0], dict(zip(client_names, hosts[1:], strict=True)))
