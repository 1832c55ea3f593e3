"""Sees any change to the channel while a cell runs: the kernel tells of it, so nothing has to ask again and again.

rtnetlink(7) announces every qdisc and filter that is added, changed or removed (RTNLGRP_TC), and interfaces that go down or
away (RTNLGRP_LINK). A change that was undone before the next readback is seen as well.
"""

import errno
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

from testbed.errors import SetupError

_RTMGRP_LINK, _RTMGRP_TC = 0x1, 0x8  # linux/rtnetlink.h
_NEWLINK, _DELLINK = 16, 17
_TC_WORDS = {36: "qdisc set", 37: "qdisc removed", 44: "filter set", 45: "filter removed"}  # RTM_NEWQDISC …
_HEADER = struct.Struct("=IHHII")  # struct nlmsghdr: length, type, flags, sequence, port
_LINK = struct.Struct("=BxHiII")  # struct ifinfomsg: family, type, index, flags, change
_TC = struct.Struct("=B3xi")  # struct tcmsg: family, interface index
_IFF_UP = 0x1


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Type and body of each netlink message in a datagram."""
    while len(data) >= _HEADER.size:
        length, kind = _HEADER.unpack_from(data)[:2]
        yield kind, data[_HEADER.size : length]
        data = data[(length + 3) & ~3 :]


class Watch:
    """Listens in the namespace it is made in; `interfaces` are those of the channel, by index."""

    def __init__(self, interfaces: dict[int, str]) -> None:
        self._interfaces = interfaces
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.NETLINK_ROUTE)
        self._socket.bind((0, _RTMGRP_LINK | _RTMGRP_TC))

    def close(self) -> None:
        """Listen no more."""
        self._socket.close()

    def _change(self, kind: int, body: bytes) -> str | None:
        if kind in (_NEWLINK, _DELLINK):
            _, _, index, flags, _ = _LINK.unpack_from(body)
            gone = "removed" if kind == _DELLINK else None if flags & _IFF_UP else "taken down"
        else:
            _, index = _TC.unpack_from(body)
            gone = _TC_WORDS.get(kind)
        return f"{self._interfaces[index]}: {gone}" if gone and index in self._interfaces else None

    def check(self) -> None:
        """Raises SetupError with what was changed since the last check; never waits."""
        changes: dict[str, None] = {}
        while True:
            try:
                data = self._socket.recv(1 << 16)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                changes["so many changes that the kernel could not tell of all"] = None
                continue
            changes |= {change: None for kind, body in _messages(data) if (change := self._change(kind, body))}
        if changes:
            raise SetupError(f"the channel was changed while the cell ran: {', '.join(changes)}")


@contextmanager
def watched(names: list[str]) -> Iterator[Watch]:
    """A watch over interfaces of the namespace that this thread is in."""
    watch = Watch({socket.if_nametoindex(name): name for name in names})
    try:
        yield watch
    finally:
        watch.close()
