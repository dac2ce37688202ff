-- What the call says, and the values of its callers.
local input = ARGV[1]
local nowMs, at, gateway, lease, heard, concurrent, restLimit, restSeconds, graphqlLimit, graphqlSeconds,
  cpuLimit, graphqlCpuLimit, cpuSeconds, minuteLimit, minuteSeconds, hourLimit, hourSeconds, shadow =
  struct.unpack('<dI4I4I4I4I4I4I4I4I4I4I4I4I4I4I4I4I4', input)
at = at + 1
-- A sliding window has the highest bit set. Its steps are as long as 'stepOf' says; 0: it is fixed.
local function span(coded)
  if coded < 2147483648 then return coded, 0 end
  return coded - 2147483648, math.ceil((coded - 2147483648) / 12)
end
local restStep, graphqlStep, cpuStep, minuteStep, hourStep
restSeconds, restStep = span(restSeconds)
graphqlSeconds, graphqlStep = span(graphqlSeconds)
cpuSeconds, cpuStep = span(cpuSeconds)
minuteSeconds, minuteStep = span(minuteSeconds)
hourSeconds, hourStep = span(hourSeconds)
if nowMs == 0 then
  local time = redis.call('TIME')
  nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
end
local now, opened = math.floor(nowMs / 1000), math.ceil(nowMs / 1000)
local keys = KEYS
local values = redis.call('MGET', unpack(keys))
local unpackStruct, pack, band, bor, max, call = struct.unpack, struct.pack, bit.band, bit.bor, math.max, redis.call
local LARGEST, NONE = 2147483647, 4294967295
-- Kinds of operations: 0 the end of a REST request, 1 of a GraphQL request, 2 content, 3 a renewal, 4 to forget what was
-- spent, then decisions.
local END_GRAPHQL, CONTENT, FORGET, FIRST_DECISION, FIRST_KIND, KIND_BYTES = 1, 2, 4, 5, 77, 29
-- Flags of a kind that changes what a decision has spent.
local ADDS_POINTS, GIVES_BACK = 8, 16
-- The steps of windows that slide and else have a place.
local CORE, MINUTE, HOUR, CPU, GRAPHQL_CPU = 0, 10, 11, 12, 13
-- The first byte of each value.
local VERSION = 1
local FOREIGN, NOTHING = pack('<I1I1I4I4I4', 255, 0, 0, 0, 0), pack('<I1I1I4I4I4', 0, 0, 0, 0, 0)
-- The last second in which an open window can end: what ends later was written by a clock that went wrong.
local lastMinute, lastHour, lastCpu = now + minuteSeconds + 1, now + hourSeconds + 1, now + cpuSeconds + 1
local lastLease = now + 86400
-- A gateway that asks is alive, so its own lease counts even where it is over. Leases of others that ended while this server
-- stood still count a little longer: their gateways have to renew them first. Gateways hear of the server each second.
local leaseNow, renewedBy = now, now + 5
if heard > 0 and heard < now - 2 then leaseNow = heard end
local leaseEnd = opened + lease -- rounded up like windows: a lease of one second must not be over at once
local replies, replied = { pack('<d', nowMs) }, 1
