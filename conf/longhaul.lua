-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
--
-- Wireshark dissector of what two longhauld tell each other (doc/peer-protocol.md of the source). The messages are
-- sealed; with the key that both share, named in the preferences, they are opened:
--
--	tshark -o longhaul.keys:/etc/longhaul/edge-b.key -r file.pcap -Y longhaul
--
-- A session's key is made of the salts in its HELLOs, so these must be in the capture, too. A stop of longhauld at one
-- end and a start make new ones, and so does another key; a restart goes on with the session that there is. Seals are opened and not verified: a message that reads like nonsense was
-- damaged, or another key was used.
local bit = bit or bit32
local band, bor, bxor, bnot = bit.band, bit.bor, bit.bxor, bit.bnot
local lshift, rshift = bit.lshift, bit.rshift

---- 32-bit words, and 64-bit ones as pairs of them ----

local function word(x) -- of the signed numbers of some bit libraries
	return x % 4294967296
end

local function rotl32(x, n)
	return bor(lshift(x, n), rshift(x, 32 - n))
end

local function le32(s, at)
	local a, b, c, d = s:byte(at, at + 3)
	return a + b * 256 + c * 65536 + d * 16777216
end

local function to_le32(x)
	x = word(x)
	return string.char(x % 256, math.floor(x / 256) % 256, math.floor(x / 65536) % 256,
		math.floor(x / 16777216) % 256)
end

---- ChaCha20 (RFC 8439), and its X form with a nonce of 24 bytes ----

local function quarter(s, a, b, c, d)
	s[a] = word(s[a] + s[b]); s[d] = rotl32(bxor(s[d], s[a]), 16)
	s[c] = word(s[c] + word(s[d])); s[b] = rotl32(bxor(s[b], s[c]), 12)
	s[a] = word(s[a] + word(s[b])); s[d] = rotl32(bxor(s[d], s[a]), 8)
	s[c] = word(s[c] + word(s[d])); s[b] = word(rotl32(bxor(s[b], s[c]), 7))
	s[d] = word(s[d])
end

local function state_of(key, rest)
	local s = { 0x61707865, 0x3320646e, 0x79622d32, 0x6b206574 }

	for i = 0, 7 do s[5 + i] = le32(key, 1 + 4 * i) end
	for i = 0, 3 do s[13 + i] = le32(rest, 1 + 4 * i) end
	return s
end

local function rounds(s)
	for _ = 1, 10 do
		quarter(s, 1, 5, 9, 13); quarter(s, 2, 6, 10, 14)
		quarter(s, 3, 7, 11, 15); quarter(s, 4, 8, 12, 16)
		quarter(s, 1, 6, 11, 16); quarter(s, 2, 7, 12, 13)
		quarter(s, 3, 8, 9, 14); quarter(s, 4, 5, 10, 15)
	end
end

local function hchacha(key, nonce16)
	local s = state_of(key, nonce16)
	local out = {}

	rounds(s)
	for i = 1, 4 do out[i] = to_le32(s[i]) end
	for i = 13, 16 do out[i - 8] = to_le32(s[i]) end
	return table.concat(out)
end

local function xchacha(key, nonce24, text)
	local sub = hchacha(key, nonce24:sub(1, 16))
	local out = {}

	for block = 0, math.floor((#text - 1) / 64) do
		local start = state_of(sub, to_le32(block + 1) .. "\0\0\0\0" .. nonce24:sub(17, 24))
		local s = {}

		for i = 1, 16 do s[i] = start[i] end
		rounds(s)
		for i = 1, 16 do
			local stream = to_le32(s[i] + start[i])
			for k = 1, 4 do
				local c = text:byte(block * 64 + (i - 1) * 4 + k)
				if c then out[#out + 1] = string.char(word(bxor(c, stream:byte(k)))) end
			end
		end
	end
	return table.concat(out)
end

---- BLAKE2b (RFC 7693), keyed, of one block at most besides the key; words are {high, low} ----

local IV = {
	{ 0x6a09e667, 0xf3bcc908 }, { 0xbb67ae85, 0x84caa73b }, { 0x3c6ef372, 0xfe94f82b }, { 0xa54ff53a, 0x5f1d36f1 },
	{ 0x510e527f, 0xade682d1 }, { 0x9b05688c, 0x2b3e6c1f }, { 0x1f83d9ab, 0xfb41bd6b }, { 0x5be0cd19, 0x137e2179 },
}
local SIGMA = {
	{ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 }, { 14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3 },
	{ 11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4 }, { 7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8 },
	{ 9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13 }, { 2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9 },
	{ 12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11 }, { 13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10 },
	{ 6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5 }, { 10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0 },
}

local function add64(a, b)
	local low = a[2] + b[2]

	return { (a[1] + b[1] + math.floor(low / 4294967296)) % 4294967296, low % 4294967296 }
end

local function xor64(a, b)
	return { word(bxor(a[1], b[1])), word(bxor(a[2], b[2])) }
end

local function rotr64(a, n)
	if n == 32 then return { a[2], a[1] } end
	if n == 63 then -- to the left by one
		return { word(bor(lshift(a[1], 1), rshift(a[2], 31))), word(bor(lshift(a[2], 1), rshift(a[1], 31))) }
	end
	return { word(bor(rshift(a[1], n), lshift(a[2], 32 - n))), word(bor(rshift(a[2], n), lshift(a[1], 32 - n))) }
end

local function mix(v, a, b, c, d, x, y)
	v[a] = add64(add64(v[a], v[b]), x); v[d] = rotr64(xor64(v[d], v[a]), 32)
	v[c] = add64(v[c], v[d]); v[b] = rotr64(xor64(v[b], v[c]), 24)
	v[a] = add64(add64(v[a], v[b]), y); v[d] = rotr64(xor64(v[d], v[a]), 16)
	v[c] = add64(v[c], v[d]); v[b] = rotr64(xor64(v[b], v[c]), 63)
end

local function compress(h, block, count, last)
	local v, m = {}, {}

	block = block .. ("\0"):rep(128 - #block)
	for i = 0, 15 do m[i] = { le32(block, 5 + 8 * i), le32(block, 1 + 8 * i) } end
	for i = 1, 8 do
		v[i - 1] = h[i]
		v[i + 7] = IV[i]
	end
	v[12] = xor64(v[12], { 0, count })
	if last then v[14] = { word(bnot(v[14][1])), word(bnot(v[14][2])) } end
	for r = 0, 11 do
		local s = SIGMA[r % 10 + 1]

		mix(v, 0, 4, 8, 12, m[s[1]], m[s[2]]); mix(v, 1, 5, 9, 13, m[s[3]], m[s[4]])
		mix(v, 2, 6, 10, 14, m[s[5]], m[s[6]]); mix(v, 3, 7, 11, 15, m[s[7]], m[s[8]])
		mix(v, 0, 5, 10, 15, m[s[9]], m[s[10]]); mix(v, 1, 6, 11, 12, m[s[11]], m[s[12]])
		mix(v, 2, 7, 8, 13, m[s[13]], m[s[14]]); mix(v, 3, 4, 9, 14, m[s[15]], m[s[16]])
	end
	for i = 1, 8 do h[i] = xor64(h[i], xor64(v[i - 1], v[i + 7])) end
end

-- @salt, @personal: of 16 bytes
local function blake2b(key, text, len, salt, personal)
	local params = string.char(len, #key, 1, 1) .. ("\0"):rep(28) .. salt .. personal
	local h, out = {}, {}

	for i = 1, 8 do h[i] = xor64(IV[i], { le32(params, 8 * i - 3), le32(params, 8 * i - 7) }) end
	compress(h, key, 128, #text == 0)
	if #text > 0 then compress(h, text, 128 + #text, true) end
	for i = 1, 8 do out[i] = to_le32(h[i][2]) .. to_le32(h[i][1]) end
	return table.concat(out):sub(1, len)
end

local function kdf(key, number, context, len)
	return blake2b(key, "", len, string.char(number) .. ("\0"):rep(15), context .. ("\0"):rep(8))
end

---- the keys ----

local function base64(text)
	local set = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	local value, bits, out = 0, 0, {}

	for c in text:gmatch("[%w+/]") do
		value = value * 64 + set:find(c, 1, true) - 1
		bits = bits + 6
		if bits >= 8 then
			bits = bits - 8
			out[#out + 1] = string.char(math.floor(value / 2 ^ bits))
			value = value % 2 ^ bits
		end
	end
	return table.concat(out)
end

local pairs_of = {} -- {hello key, root}
local session_key = {} -- by session id in clear
local session_known = {}

local function load_keys(names)
	pairs_of, session_key, session_known = {}, {}, {}
	for name in names:gmatch("[^%s,;]+") do
		local f = io.open(name)
		local key = f and base64(f:read("*a") or "") or ""

		if f then f:close() end
		if #key == 32 then
			pairs_of[#pairs_of + 1] = { hello = kdf(key, 1, "lhpeerps", 32), root = kdf(key, 2, "lhpeerps", 32) }
		end
	end
end

local function learn_session(root, a, b)
	local low, high = a < b and a or b, a < b and b or a

	if low == high or b == ("\0"):rep(32) or session_known[root .. low .. high] then return end
	session_known[root .. low .. high] = true
	local session = blake2b(root, "longhaul peer session 1" .. low .. high, 32, ("\0"):rep(16), ("\0"):rep(16))
	local ids = kdf(session, 3, "lhpeerss", 16)
	session_key[ids:sub(1, 8)] = kdf(session, 1, "lhpeerss", 32)
	session_key[ids:sub(9, 16)] = kdf(session, 2, "lhpeerss", 32)
end

---- the protocol ----

local longhaul = Proto("longhaul", "longhaul, reports between appliances")
local kinds = { [1] = "HELLO", [2] = "DATA" }
local types = {
	[1] = "CHALLENGE", [2] = "HELLO", [3] = "HEARTBEAT", [4] = "BYE", [5] = "SITE", [6] = "PROBE", [7] = "PROBED", [16] = "LANE OPEN", [17] = "LANE ACCEPT",
	[18] = "LANE REFUSE", [19] = "LANE PROGRESS", [20] = "LANE CLOSE", [21] = "LANE ANSWERS",
	[24] = "ORDER", [26] = "METER", [27] = "AHEAD",
}
local reasons = {
	[0] = "none", "connection not seen", "seen one way only", "other queue pairs", "no rule", "no room in tables", "idle",
	"disconnected", "new incarnation", "refused by the responder", "responder silent", "peer lost", "peer restarted",
	"operator", "path MTU unknown", "pool full", "a packet from before the handover is lost", "a READ too long to hold",
	"custody of the other direction is lost", "a former process numbered the packets anew",
	"a READ was answered before its host asked", "the responder was not ready for too long",
	"the opener does not seal what it sends", "a request with an unknown opcode has passed",
	"asked: has the number another owner?", "packets miss one of the two appliances",
}
local byes = { "the process ends", "the peer is no longer configured" }
local policies = { [0] = "early", "honest", "off" }

local F = {
	version = ProtoField.uint8("longhaul.version", "Version"),
	kind = ProtoField.uint8("longhaul.kind", "Kind", base.DEC, kinds),
	nonce = ProtoField.bytes("longhaul.nonce", "Nonce"),
	session = ProtoField.bytes("longhaul.session", "Session"),
	number = ProtoField.uint64("longhaul.number", "Sequence number"),
	sealed = ProtoField.bytes("longhaul.sealed", "Sealed messages"),
	tag = ProtoField.bytes("longhaul.tag", "Tag"),
	type = ProtoField.uint8("longhaul.type", "Type", base.DEC, types),
	flags = ProtoField.uint8("longhaul.flags", "Flags", base.HEX),
	length = ProtoField.uint16("longhaul.length", "Length"),
	body = ProtoField.bytes("longhaul.body", "Body"),
	salt = ProtoField.bytes("longhaul.salt", "Salt"),
	echo = ProtoField.bytes("longhaul.echo", "Salt heard"),
	highest = ProtoField.uint8("longhaul.highest_version", "Highest version"),
	boot = ProtoField.uint64("longhaul.boot", "Boot epoch", base.HEX),
	features = ProtoField.uint32("longhaul.features", "Features", base.HEX),
	window = ProtoField.uint32("longhaul.window", "Window"),
	name_length = ProtoField.uint8("longhaul.name_length", "Length of the name"),
	prefix_count = ProtoField.uint8("longhaul.prefix_count", "Prefixes"),
	node = ProtoField.string("longhaul.node", "Node"),
	prefix = ProtoField.ipv6("longhaul.prefix", "Prefix"),
	prefix_length = ProtoField.uint8("longhaul.prefix_length", "Length of the prefix"),
	sent = ProtoField.uint64("longhaul.sent", "Sent (ns)"),
	echoed = ProtoField.uint64("longhaul.echoed", "Echo (ns)"),
	held = ProtoField.uint32("longhaul.held", "Held (us)"),
	bye = ProtoField.uint8("longhaul.bye", "Reason", base.DEC, byes),
	lane = ProtoField.uint32("longhaul.lane", "Lane"),
	generation = ProtoField.uint32("longhaul.generation", "Generation"),
	source = ProtoField.ipv6("longhaul.source", "Source"),
	destination = ProtoField.ipv6("longhaul.destination", "Destination"),
	qpn = ProtoField.uint24("longhaul.qpn", "Destination QPN", base.HEX),
	vlan = ProtoField.uint16("longhaul.vlan", "VLAN"),
	rqpn = ProtoField.uint24("longhaul.requester_qpn", "Requester's QPN", base.HEX),
	start_psn = ProtoField.uint24("longhaul.start_psn", "Start PSN", base.HEX),
	start_msn = ProtoField.uint24("longhaul.start_msn", "Start MSN"),
	path_mtu = ProtoField.uint16("longhaul.path_mtu", "Path MTU"),
	policy = ProtoField.uint8("longhaul.policy", "Policy", base.DEC, policies),
	reason = ProtoField.uint8("longhaul.reason", "Reason", base.DEC, reasons),
	sequence = ProtoField.uint32("longhaul.sequence", "Sequence"),
	cum = ProtoField.uint24("longhaul.cum", "Next PSN expected", base.HEX),
	room = ProtoField.uint24("longhaul.room", "Room up to PSN", base.HEX),
	ack_psn = ProtoField.uint24("longhaul.true_ack_psn", "True ACK: next PSN", base.HEX),
	ack_msn = ProtoField.uint24("longhaul.true_ack_msn", "True ACK: MSN"),
	hi = ProtoField.uint24("longhaul.hi", "End of the highest received", base.HEX),
	credit = ProtoField.uint8("longhaul.credit", "Credit", base.HEX),
	refusal = ProtoField.uint8("longhaul.refusal", "Refusal", base.HEX),
	refusal_psn = ProtoField.uint24("longhaul.refusal_psn", "Refused PSN", base.HEX),
	holes = ProtoField.uint8("longhaul.holes", "Holes"),
	hole_from = ProtoField.uint24("longhaul.hole.from", "Hole from", base.HEX),
	hole_end = ProtoField.uint24("longhaul.hole.end", "Hole end", base.HEX),
	agains = ProtoField.uint8("longhaul.agains", "To be sent again"),
	again = ProtoField.uint24("longhaul.again", "To be sent again, PSN", base.HEX),
	latest = ProtoField.uint24("longhaul.latest", "Latest answer", base.HEX),
	depth = ProtoField.uint16("longhaul.depth", "READs at a time"),
	answers_heard = ProtoField.uint32("longhaul.answers_heard", "Latest ANSWERS heard"),
	announce_key = ProtoField.bytes("longhaul.announce_key", "Key of announcements"),
	seal_key = ProtoField.bytes("longhaul.seal_key", "Key of the seal"),
	log = ProtoField.uint32("longhaul.log", "Log"),
	birth = ProtoField.uint32("longhaul.birth", "Birth"),
	clear = ProtoField.uint24("longhaul.clear", "Clear below PSN", base.HEX),
	base = ProtoField.uint32("longhaul.base", "First record"),
	step = ProtoField.uint32("longhaul.step", "Step (us)"),
	records = ProtoField.uint8("longhaul.records", "Records"),
	record_lane = ProtoField.uint32("longhaul.record.lane", "Lane"),
	record_psn = ProtoField.uint24("longhaul.record.psn", "PSN", base.HEX),
	record_kind = ProtoField.uint8("longhaul.record.kind", "Kind", base.DEC, { "CLEAR", "WAIT" }),
	address = ProtoField.uint64("longhaul.address", "Address", base.HEX),
	va_step = ProtoField.uint64("longhaul.address_step", "From one to the next", base.HEX),
	rkey = ProtoField.uint32("longhaul.rkey", "Remote key", base.HEX),
	read_length = ProtoField.uint32("longhaul.read_length", "Length of each"),
	first_psn = ProtoField.uint24("longhaul.first_psn", "First PSN", base.HEX),
	behind_psn = ProtoField.uint24("longhaul.behind_psn", "PSN behind the last", base.HEX),
	reads = ProtoField.uint8("longhaul.reads", "READs"),
	sent_bytes = ProtoField.uint64("longhaul.sent_bytes", "Sent (bytes)"),
	echoed_bytes = ProtoField.uint64("longhaul.echoed_bytes", "Echo (bytes)"),
	got_at = ProtoField.uint64("longhaul.got_at", "Got at (ns)"),
	got_bytes = ProtoField.uint64("longhaul.got_bytes", "Got (bytes)"),
	got_packets = ProtoField.uint64("longhaul.got_packets", "Got (packets)"),
	probe = ProtoField.uint32("longhaul.probe", "Round"),
	size = ProtoField.uint16("longhaul.size", "Size of the packet"),
	carried = ProtoField.uint16("longhaul.carried", "Longest that arrives"),
	refused = ProtoField.uint16("longhaul.refused", "Shortest that does not"),
	padding = ProtoField.uint16("longhaul.padding", "Padding (bytes)"),
	longest = ProtoField.uint16("longhaul.longest", "Longest that hosts send"),
	marked = ProtoField.uint64("longhaul.marked", "Marked (packets)"),
}
longhaul.fields = {}
for _, f in pairs(F) do table.insert(longhaul.fields, f) end

-- Fixed parts of bodies, in order, with their sizes
local LANE = { "lane", 4, "generation", 4 }
local KEY = { "source", 16, "destination", 16, "qpn", 3, "vlan", 2 }
local function all(...)
	local out = {}

	for _, part in ipairs({ ... }) do
		for _, x in ipairs(part) do out[#out + 1] = x end
	end
	return out
end
local bodies = {
	[1] = { "salt", 32, "echo", 32 },
	[2] = { "highest", 1, "boot", 8, "features", 4, "window", 4, "name_length", 1, "prefix_count", 1 },
	[3] = { "sent", 8, "echoed", 8, "held", 4 },
	[4] = { "bye", 1 },
	[6] = { "probe", 4, "size", 2, "carried", 2, "refused", 2, "longest", 2, "padding", 2 },
	[7] = { "probe", 4, "size", 2 },
	[16] = all(LANE, KEY, { "rqpn", 3, "start_psn", 3, "start_msn", 3, "path_mtu", 2, "policy", 1 }),
	[17] = LANE,
	[18] = all(LANE, { "reason", 1 }),
	[19] = all(LANE, { "sequence", 4, "cum", 3, "room", 3, "ack_psn", 3, "ack_msn", 3, "hi", 3, "credit", 1, "refusal", 1,
		"refusal_psn", 3, "reason", 1, "holes", 1 }),
	[20] = all(LANE, KEY, { "reason", 1 }),
	[21] = all(LANE, KEY, { "sequence", 4, "cum", 3, "hi", 3, "latest", 3, "depth", 2, "holes", 1 }),
	[24] = { "log", 4, "generation", 4, "sequence", 4, "base", 4, "step", 4, "records", 1 },
	[26] = { "sent", 8, "sent_bytes", 8, "echoed", 8, "echoed_bytes", 8, "got_at", 8, "got_bytes", 8, "got_packets", 8,
		"marked", 8, "held", 4 },
	[27] = all(LANE, { "address", 8, "va_step", 8, "rkey", 4, "read_length", 4, "first_psn", 3, "behind_psn", 3,
		"reads", 1 }),
}
-- The names of the flag bits, from bit 0 on
local flag_names = {
	[1] = { "seek", "established" }, [2] = { "more prefixes" }, [6] = { "last" }, [7] = { "last" }, [16] = { "resume, or an offer with a count", "one READ at a time",
		"of an old version", "held to the order of its hosts", "of an old version", "offer", "sealed" },
	[19] = { "ACK may bear the PSN", "packets refused", "of an old version",
		"storage commands are looked at", "the responder's numbers may differ", "requests come past the opener" },
	[21] = { "READs ahead for storage commands" }, [20] = { "by the opener" },
	[24] = { "by the opener", "records are missing" },
}

-- What follows the fixed part @at: prefixes, holes
local function variable(kind, flags, body, at, tree)
	local function take(f, n)
		if at + n > body:len() then return nil end
		at = at + n
		tree:add(f, body(at - n, n))
		return body(at - n, n)
	end

	if kind == 2 then
		local name, count = body(17, 1):uint(), body(18, 1):uint()

		take(F.node, name)
		for _ = 1, count do
			if not take(F.prefix, 16) or not take(F.prefix_length, 1) then return end
		end
	elseif kind == 16 then
		if band(flags, 8) ~= 0 then
			take(F.log, 4)
			take(F.birth, 4)
			take(F.clear, 3)
		end
		if band(flags, 0x60) == 0x40 then take(F.seal_key, 16) end
	elseif kind == 19 or kind == 21 then
		for _ = 1, body(at - 1, 1):uint() do
			if not take(F.hole_from, 3) or not take(F.hole_end, 3) then return end
		end
		if kind == 19 and band(flags, 2) ~= 0 then
			local n = take(F.agains, 1)

			for _ = 1, n and n:uint() or 0 do
				if not take(F.again, 3) then return end
			end
		end
		if kind == 19 and band(flags, 8) ~= 0 then take(F.answers_heard, 4) end
		if kind == 21 and band(flags, 1) ~= 0 then take(F.announce_key, 16) end
	elseif kind == 24 then
		for _ = 1, body(at - 1, 1):uint() do
			if not (take(F.record_lane, 4) and take(F.birth, 4) and take(F.record_psn, 3) and take(F.record_kind, 1)) then
				return
			end
		end
	end
end

local function message(tvb, tree, info)
	local kind, flags, len = tvb(0, 1):uint(), tvb(1, 1):uint(), tvb(2, 2):uint()
	local name = types[kind] or "type " .. kind
	local t = tree:add(longhaul, tvb(0, math.min(4 + len, tvb:len())), "Message " .. name)
	local at = 0

	info[#info + 1] = name
	t:add(F.type, tvb(0, 1))
	local f, said = t:add(F.flags, tvb(1, 1)), {}
	for i, text in ipairs(flag_names[kind] or {}) do
		if band(flags, 2 ^ (i - 1)) ~= 0 then said[#said + 1] = text end
	end
	if #said > 0 then f:append_text(" (" .. table.concat(said, ", ") .. ")") end
	t:add(F.length, tvb(2, 2))
	if 4 + len > tvb:len() then return nil end
	local body = len > 0 and tvb(4, len):tvb() or nil
	local fixed, size = bodies[kind], 0
	for i = 2, #(fixed or {}), 2 do size = size + fixed[i] end
	if fixed and len >= size then
		for i = 1, #fixed, 2 do
			t:add(F[fixed[i]], body(at, fixed[i + 1]))
			at = at + fixed[i + 1]
		end
		variable(kind, flags, body, at, t)
	elseif body then
		t:add(F.body, body(0, len))
	end
	return 4 + len
end

-- What is sealed with @key, opened; a HELLO with a key that is not its own reads like nonsense
local function open(key, nonce, sealed)
	return xchacha(key, nonce, sealed)
end

local function open_hello(head, sealed)
	for _, p in ipairs(pairs_of) do
		local text = open(p.hello, head, sealed)

		if text:byte(1) == 1 and text:byte(3) == 0 and text:byte(4) == 64 then
			learn_session(p.root, text:sub(5, 36), text:sub(37, 68))
			return text
		end
	end
end

local function open_data(id, number, sealed)
	return session_key[id] and open(session_key[id], ("\0"):rep(16) .. number, sealed)
end

function longhaul.dissector(tvb, pinfo, root)
	if tvb:len() < 36 or tvb(0, 2):string() ~= "LH" then return 0 end
	local kind = tvb(3, 1):uint()
	local head = kind == 1 and 28 or 20
	local tree, info, text = root:add(longhaul, tvb()), {}, nil
	local n = tvb:len() - head - 16

	pinfo.cols.protocol = "longhaul"
	tree:add(F.version, tvb(2, 1))
	tree:add(F.kind, tvb(3, 1))
	if not kinds[kind] or tvb(2, 1):uint() ~= 1 or n < 1 then return tvb:len() end
	local sealed = tvb:raw(head, n)
	if kind == 1 then
		tree:add(F.nonce, tvb(4, 24))
		text = open_hello(tvb:raw(4, 24), sealed)
	else
		tree:add(F.session, tvb(4, 8))
		tree:add(F.number, tvb(12, 8))
		text = open_data(tvb:raw(4, 8), tvb:raw(12, 8), sealed)
	end
	tree:add(F.sealed, tvb(head, n))
	tree:add(F.tag, tvb(head + n, 16))
	if text then
		local opened = ByteArray.new(text, true):tvb("Opened")
		local at = 0

		while at and at + 4 <= opened:len() do
			local used = message(opened(at):tvb(), tree, info)
			at = used and at + used
		end
	end
	pinfo.cols.info = kinds[kind] .. (#info > 0 and ": " .. table.concat(info, ", ") or ", sealed")
	return tvb:len()
end

longhaul.prefs.port = Pref.uint("UDP port", 4797, "`port` of longhaul.conf")
longhaul.prefs.keys = Pref.string("Key files", "", "Files of `longhaul keygen`, separated by spaces")

local udp = DissectorTable.get("udp.port")
local port = longhaul.prefs.port

udp:add(port, longhaul)
function longhaul.prefs_changed()
	if port ~= longhaul.prefs.port then
		udp:remove(port, longhaul)
		port = longhaul.prefs.port
		udp:add(port, longhaul)
	end
	load_keys(longhaul.prefs.keys)
end
function longhaul.init()
	load_keys(longhaul.prefs.keys)
end
