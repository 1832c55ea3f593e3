-- ZMTP 3.x (RFC 23/ZMTP, rfc.zeromq.org/spec/23) for a Wireshark that does not know it:
--   tshark -X lua_script:analysis/zmtp.lua -d tcp.port==5556-5557,zmtp -r client-side.pcap
local found, known = pcall(Dissector.get, "zmtp")
if found and known then
  return
end

local GREETING, SIGNATURE = 64, 0xff -- bytes of a greeting, and its first; a frame's flags are at most 7
local MORE, LONG, COMMAND = 1, 2, 4

local zmtp = Proto("zmtp", "ZeroMQ Message Transport Protocol")
local fields = {
  version = ProtoField.string("zmtp.version", "Version"),
  mechanism = ProtoField.stringz("zmtp.mechanism", "Mechanism"),
  flags = ProtoField.uint8("zmtp.flags", "Flags", base.HEX),
  more = ProtoField.bool("zmtp.flags.more", "More frames follow", 8, nil, MORE),
  long = ProtoField.bool("zmtp.flags.long", "Long", 8, nil, LONG),
  command = ProtoField.bool("zmtp.flags.command", "Command", 8, nil, COMMAND),
  length = ProtoField.uint64("zmtp.length", "Length"),
  name = ProtoField.string("zmtp.command", "Command name"),
  body = ProtoField.bytes("zmtp.body", "Body"),
  topic = ProtoField.string("zmtp.topic", "Topic"),
}
zmtp.fields = fields
local bad = ProtoExpert.new("zmtp.bad", "Not a ZMTP frame", expert.group.MALFORMED, expert.severity.ERROR)
zmtp.experts = { bad }

local function is_long(buffer, offset)
  return bit.band(buffer(offset, 1):uint(), LONG) ~= 0
end

local function length_of(buffer, _, offset)
  if buffer(offset, 1):uint() == SIGNATURE then
    return GREETING
  elseif not is_long(buffer, offset) then
    return 2 + buffer(offset + 1, 1):uint()
  elseif buffer:len() - offset < 9 then
    return 0 -- the length itself is not there yet
  end
  return 9 + buffer(offset + 1, 8):uint64():tonumber()
end

local function greeting(buffer, tree)
  tree:add(fields.version, buffer(10, 2), string.format("%d.%d", buffer(10, 1):uint(), buffer(11, 1):uint()))
  tree:add(fields.mechanism, buffer(12, 20))
  if buffer(9, 1):uint() ~= 0x7f then
    tree:add_proto_expert_info(bad)
  end
  return "Greeting"
end

local function frame(buffer, tree)
  local flags, header = buffer(0, 1):uint(), is_long(buffer, 0) and 9 or 2
  for _, field in ipairs({ fields.flags, fields.more, fields.long, fields.command }) do
    tree:add(field, buffer(0, 1))
  end
  tree:add(fields.length, buffer(1, header - 1))
  if flags > 7 then
    tree:add_proto_expert_info(bad)
  end
  if buffer:len() == header then
    return "Empty frame"
  end
  tree:add(fields.body, buffer(header))
  if bit.band(flags, COMMAND) == 0 then
    local topic = buffer(header):string():match("^\1?([%w/_-]+) ") -- the testbed's messages; after a 1: a subscription
    if topic then
      tree:add(fields.topic, buffer(header), topic)
    end
    return "Message"
  end
  local name = buffer(header + 1, buffer(header, 1):uint())
  tree:add(fields.name, name)
  return name:string()
end

local function dissect(buffer, packet, root)
  local tree = root:add(zmtp, buffer())
  local first = buffer(0, 1):uint() == SIGNATURE
  packet.cols.protocol = "ZMTP"
  packet.cols.info = (first and greeting or frame)(buffer, tree)
  return buffer:len()
end

function zmtp.dissector(buffer, packet, root)
  return dissect_tcp_pdus(buffer, root, 2, length_of, dissect)
end

DissectorTable.get("tcp.port"):add_for_decode_as(zmtp)
