-- PGM's SPM requests (RFC 3208, appendix C): a header and no more, 16 bytes. Wireshark's own dissector wants 18 at least and
-- leaves them as data:
--   tshark -X lua_script:analysis/pgm-spmr.lua -d udp.port==5558-5559,pgm -r client-side.pcap
local LENGTH, SPMR = 16, 0x0c -- bytes of the header; its packet type

local request = Proto("pgm_spmr", "PGM SPM Request")
local fields = {
  source = ProtoField.uint16("pgm_spmr.source_port", "Source port"),
  destination = ProtoField.uint16("pgm_spmr.destination_port", "Destination port"),
  kind = ProtoField.uint8("pgm_spmr.type", "Packet type", base.HEX, { [SPMR] = "SPMR" }),
  options = ProtoField.uint8("pgm_spmr.options", "Options", base.HEX),
  checksum = ProtoField.uint16("pgm_spmr.checksum", "Checksum", base.HEX),
  session = ProtoField.bytes("pgm_spmr.gsi", "Global source id"),
  data = ProtoField.uint16("pgm_spmr.tsdu_length", "Length of data"),
}
request.fields = fields

local PLACES = {
  { "source", 0, 2 }, { "destination", 2, 2 }, { "kind", 4, 1 }, { "options", 5, 1 },
  { "checksum", 6, 2 }, { "session", 8, 6 }, { "data", 14, 2 },
}

function request.dissector(buffer, packet, root)
  local tree = root:add(request, buffer())
  for _, place in ipairs(PLACES) do
    tree:add(fields[place[1]], buffer(place[2], place[3]))
  end
  packet.cols.protocol = "PGM"
  packet.cols.info = "SPMR"
  return LENGTH
end

-- Asked after the port's own dissector has refused.
request:register_heuristic("udp", function(buffer, packet, root)
  if buffer:len() ~= LENGTH or buffer(4, 1):uint() ~= SPMR or buffer(14, 2):uint() ~= 0 then
    return false
  end
  request.dissector(buffer, packet, root)
  return true
end)
