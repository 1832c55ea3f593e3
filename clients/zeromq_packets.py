"""ZeroMQ in a capture: ZMTP 3 over TCP, PGM and NORM in UDP.

A message is its topic, a space and the payload (see clients/zeromq.py); over PGM and NORM a packet is searched as a whole.
"""

import struct

from clients.packets import Dissection, Fields, Kind, Pdu, first, number, octets

_LONG, _COMMAND = 2, 4  # ZMTP frame flags (RFC 23/ZMTP)
_SUBSCRIPTIONS = {b"\x00": "CANCEL", b"\x01": "SUBSCRIBE"}  # first byte of such a message (RFC 29/PUBSUB)
_HEARTBEATS = ("PING", "PONG")


def _zmtp(fields: Fields) -> list[Pdu]:
    found = [Pdu("greeting", Kind.HANDSHAKE) for _ in fields.get("zmtp.version", ())]
    names, bodies = iter(fields.get("zmtp.command", ())), iter(fields.get("zmtp.body", ()))
    for flags, length in zip(fields.get("zmtp.flags", ()), fields.get("zmtp.length", ()), strict=True):
        body = octets(next(bodies, "")) if int(length) else b""
        if int(flags, 0) & _COMMAND:
            name = next(names, "command")
            found.append(Pdu(name, Kind.CONTROL if name in _HEARTBEATS else Kind.HANDSHAKE))
        elif body[:1] in _SUBSCRIPTIONS:
            found.append(Pdu(_SUBSCRIPTIONS[body[:1]], Kind.HANDSHAKE, topic=body[1:].decode(errors="replace").strip()))
        else:
            topic, _, payload = body.partition(b" ")
            found.append(Pdu("message", Kind.DATA, topic=topic.decode(errors="replace"), payload=payload))
    return found


_PGM = {  # RFC 3208, section 8; SPMR: appendix C
    0x00: ("SPM", Kind.CONTROL),
    0x01: ("POLL", Kind.CONTROL),
    0x02: ("POLR", Kind.CONTROL),
    0x04: ("ODATA", Kind.DATA),
    0x05: ("RDATA", Kind.REPAIR),
    0x08: ("NAK", Kind.REPAIR_REQUEST),
    0x09: ("NNAK", Kind.REPAIR_REQUEST),
    0x0A: ("NCF", Kind.REPAIR_REQUEST),
    0x0C: ("SPMR", Kind.CONTROL),
}
_PGM_OFFSET = 2  # bytes before libzmq's own data: where in them the first message begins (pgm_sender.cpp)


def _pgm(fields: Fields) -> list[Pdu]:
    code = number(first(fields, "pgm.hdr.type") or first(fields, "pgm_spmr.type"))
    if code is None:
        return []
    name, kind = _PGM.get(code, (f"type 0x{code:02x}", Kind.OTHER))
    if kind not in (Kind.DATA, Kind.REPAIR):
        return [Pdu(name, kind)]
    sequence = number(first(fields, "pgm.spm.sqn")) or 0
    carries = octets(first(fields, "data.data"))[_PGM_OFFSET:]
    return [Pdu(name, kind, span=(sequence, sequence + 1), payload=carries)]


_NORM = {  # RFC 5740, section 4.1
    1: ("INFO", Kind.CONTROL),
    2: ("DATA", Kind.DATA),
    4: ("NACK", Kind.REPAIR_REQUEST),
    5: ("ACK", Kind.CONTROL),  # libzmq asks for none of its own: these answer the congestion control
    6: ("REPORT", Kind.CONTROL),
}
_NORM_STREAM = 8  # bytes before a stream's data: payload length, start of a message, offset (section 4.2.1)
_NORM_SYMBOL, _NORM_BLOCK = 19, 16  # offset of the symbol's number in its block; symbols from 16 on are libzmq's parity
_NORM_COMMAND = 3
_NORM_COMMANDS = {  # section 4.2.3
    1: ("CMD FLUSH", Kind.CONTROL),
    2: ("CMD EOT", Kind.CONTROL),
    3: ("CMD SQUELCH", Kind.CONTROL),
    4: ("CMD CC", Kind.CONTROL),
    5: ("CMD REPAIR_ADV", Kind.REPAIR_REQUEST),
    6: ("CMD ACK_REQ", Kind.CONTROL),
    7: ("CMD APPLICATION", Kind.CONTROL),
}


def _norm(fields: Fields) -> list[Pdu]:
    code = number(first(fields, "norm.type"))
    if code is None:
        return []
    if code == _NORM_COMMAND:
        flavor = number(first(fields, "norm.flavor")) or 0
        return [Pdu(*_NORM_COMMANDS.get(flavor, (f"CMD {flavor}", Kind.OTHER)))]
    name, kind = _NORM.get(code, (f"type {code}", Kind.OTHER))
    if kind == Kind.DATA and first(fields, "norm.flag.repair") in ("1", "True"):
        name, kind = "DATA repair", Kind.REPAIR
    if kind not in (Kind.DATA, Kind.REPAIR):
        return [Pdu(name, kind)]
    datagram, header = octets(first(fields, "udp.payload")), 4 * int(first(fields, "norm.hlen"))
    if datagram[_NORM_SYMBOL] >= _NORM_BLOCK:
        return [Pdu("DATA parity", Kind.REPAIR)]
    length, _, offset = struct.unpack_from(">HHI", datagram, header)
    return [Pdu(name, kind, span=(offset, offset + length), payload=_unframed(datagram[header + _NORM_STREAM :]))]


def _unframed(data: bytes) -> bytes:
    """A ZMTP frame's body, if it fills the datagram as our clients see to: its flags stand after a byte of libzmq's own."""
    size = 8 if data[1] & _LONG else 1
    body = data[2 + size :]
    return body if int.from_bytes(data[2 : 2 + size], "big") == len(body) else data


ZMTP = Dissection(
    "ZMTP", ("zmtp.version", "zmtp.flags", "zmtp.length", "zmtp.command", "zmtp.body"), _zmtp, script="zmtp.lua"
)
PGM = Dissection("PGM", ("pgm.hdr.type", "pgm_spmr.type", "pgm.spm.sqn", "data.data"), _pgm, script="pgm-spmr.lua")
NORM = Dissection("NORM", ("norm.type", "norm.hlen", "norm.flavor", "norm.flag.repair", "udp.payload"), _norm)
