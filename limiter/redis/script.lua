-- One operation on one caller, in one step. KEYS[1]: the caller. ARGV[1]: the operation, then six numbers for each limit
-- (`wire.ts`): kind, index of its name, id of its window, seconds, seconds of a step (0: fixed), limit.
local input = cjson.decode(ARGV[1])
local operation, ms, gateway, lease, heard, count, cost, points, micros, content, spentMs, quota, concurrent, shadow =
  unpack(input, 1, 14)
local FIRST_LIMIT, NUMBERS = 15, 6
local DECIDE, END, RENEW, FORGET = 0, 2, 3, 4
-- Kinds of limits; the last is time of other requests, which begins with the time of all.
local QUOTA, POINTS, TIME, CONTENT, OTHER_TIME = 0, 1, 2, 3, 4
local VERSION, LARGEST, FOREIGN, PRIMARY, CONCURRENT, CONCURRENT_BIT = 1, 2147483647, 254, 0, 2, 4

if ms == 0 then
  local time = redis.call('TIME')
  ms = time[1] * 1000 + math.floor(time[2] / 1000)
end
-- The second that is under way, and the one at which a window that begins now is said to begin.
local now, opened = math.floor(ms / 1000), math.ceil(ms / 1000)
local key = KEYS[1]
local value = redis.pcall('GET', key)
if type(value) == 'table' then value = false end -- a value of another type: writing it will fail

-- The windows: those of all endpoints (core, content per minute and hour, CPU time, GraphQL's) come first, then others.
-- A sliding window is there once for each of its steps.
local ids, useds, ends = { 0, 10, 11, 12, 13 }, { 0, 0, 0, 0, 0 }, { 0, 0, 0, 0, 0 }
local mine, mineUntil, others, leases = 0, 0, 0, {}
-- A gateway that asks is alive, so its own lease counts even where it is over. Leases of others that ended while this
-- server stood still count a little longer: their gateways have to renew them first.
local leaseNow, leaseEnd = now, opened + lease
if heard > 0 and heard < now - 2 then leaseNow = heard end

-- Is a fixed window open? One that ends later than a whole window from now was opened by a clock that went wrong.
local function isOpen(e, seconds)
  return e > now and e <= now + seconds + 1
end

local function addLease(holder, believed, held)
  if holder == gateway then
    mine, mineUntil = held, believed
  elseif held > 0 and believed > leaseNow and believed <= now + 86400 then
    others = others + held
    leases[#leases + 1] = { held, holder, believed > now and believed or now + 5 }
  end
end

local function addWindow(id, used, e)
  if e <= now then return end
  ids[#ids + 1], useds[#useds + 1], ends[#ends + 1] = id, used, e
end

if value then
  local moreLeases, moreWindows = 0, 0
  if #value >= 65 then moreLeases, moreWindows = struct.unpack('<I2I2', value, 14) end
  -- A value that this version has not written is neither read nor overwritten.
  if #value ~= 65 + 10 * moreLeases + 14 * moreWindows or value:byte(1) ~= VERSION then
    if operation ~= FORGET then return { FOREIGN, 0, 0, 0, 0, 0, ms } end
    redis.call('DEL', key)
    value = false
  else
    local _, id, e, used, holder, believed, held, at
    if operation == END then
      -- The end of a request mostly changes three numbers of a value.
      local cpuSeconds, cpuStep, graphql = input[FIRST_LIMIT + 3], input[FIRST_LIMIT + 4], input[FIRST_LIMIT + NUMBERS] == TIME
      holder, believed, held, used, at, e = struct.unpack('<I4I4I2I4I4I4', value, 44)
      if holder == gateway and held >= -count and believed > now and cpuStep == 0 and isOpen(e, cpuSeconds) then
        redis.call('SETRANGE', key, '51', struct.pack('<I2I4I4', held + count, math.min(LARGEST, used + micros),
          math.min(LARGEST, at + (graphql and micros or 0))))
        return ms
      end
    end
    ends[1], ends[2], ends[3], _, _, id, e, used, useds[1], useds[2], useds[3], holder, believed, held, useds[4], useds[5],
      ends[4], at = struct.unpack('<I4I4I4I2I2I6I4I4I4I4I4I4I4I2I4I4I4', value, 2)
    ends[5] = ends[4]
    addWindow(id, used, e)
    addLease(holder, believed, held)
    for _ = 1, moreLeases do
      held, holder, believed, at = struct.unpack('<I2I4I4', value, at)
      addLease(holder, believed, held)
    end
    for _ = 1, moreWindows do
      id, used, e, at = struct.unpack('<I6I4I4', value, at)
      addWindow(id, used, e)
    end
  end
end

-- When the last of the windows and leases ends.
local function lastEnd(believed)
  local latest = believed
  for n = 1, #ids do
    if ends[n] > latest then latest = ends[n] end
  end
  for _, other in ipairs(leases) do latest = math.max(latest, other[3]) end
  return latest
end
-- The value is kept until then at least.
local before = lastEnd(mineUntil)

-- Place of a fixed window if it is open.
local function findOpen(id, seconds)
  for n = 1, #ids do
    if ids[n] == id and isOpen(ends[n], seconds) then return n end
  end
end

-- Places of the open steps of a sliding window, the oldest first.
local function openSteps(id, seconds, step)
  local steps = {}
  for n = 1, #ids do
    if ids[n] == id and ends[n] > now and ends[n] <= now + seconds + step + 1 then steps[#steps + 1] = n end
  end
  table.sort(steps, function(one, other) return ends[one] < ends[other] end)
  return steps
end

local function spentIn(id, seconds, step)
  local spent = 0
  if step == 0 then
    local n = findOpen(id, seconds)
    return n and useds[n] or 0
  end
  for _, n in ipairs(openSteps(id, seconds, step)) do spent = spent + useds[n] end
  return spent
end

-- When this amount no longer counts; all of a fixed window ends together. 0: less is spent.
local function freedIn(id, seconds, step, amount)
  if step == 0 then
    local n = findOpen(id, seconds)
    return n and ends[n] or 0
  end
  for _, n in ipairs(openSteps(id, seconds, step)) do
    amount = amount - useds[n]
    if amount <= 0 then return ends[n] end
  end
  return 0
end

local function addTo(id, seconds, step, amount)
  local at = step == 0 and findOpen(id, seconds)
  local e = opened + seconds
  if step > 0 then
    if amount == 0 then return end
    e = (math.floor(now / step) + 1) * step + seconds
    for n = 1, #ids do
      if ids[n] == id and ends[n] == e then at = n end
    end
  end
  if at then
    useds[at] = math.min(LARGEST, useds[at] + amount)
    return
  end
  at = #ids + 1
  for n = 1, #ids do
    if ids[n] == id and (step == 0 or ends[n] <= now) then at = n end
  end
  ids[at], useds[at], ends[at] = id, amount, e
end

-- Changes what was spent at `spentMs`, in the window or step where it counts; one that was opened later stays as it is.
local function changeSpent(id, seconds, step, amount)
  local latest = math.ceil(spentMs / 1000) + seconds
  if step > 0 then latest = (math.floor(spentMs / 1000 / step) + 1) * step + seconds end
  for _, n in ipairs(openSteps(id, seconds, step)) do
    if ends[n] == latest or (step == 0 and ends[n] < latest) then
      useds[n] = math.max(0, math.min(LARGEST, useds[n] + amount))
    end
  end
end

-- The category's window with the least left, of several the one that lasts longest: its place among them, use, end (0: it
-- is not open), and seconds.
local function shownWindow()
  local shown, spent, latest, length, least
  for at = FIRST_LIMIT, #input, NUMBERS do
    local kind, _, id, seconds, step, limit = unpack(input, at, at + 5)
    if kind ~= QUOTA then break end
    if at == FIRST_LIMIT then limit = quota end
    local used = spentIn(id, seconds, step)
    local e, left = freedIn(id, seconds, step, 1), math.max(0, limit - used)
    if not least or left < least or (left == least and e > latest) then
      shown, spent, latest, length, least = (at - FIRST_LIMIT) / NUMBERS, used, e, seconds, left
    end
  end
  return shown, spent, latest, length
end

-- Spends of the kinds of limits.
local amounts = { [QUOTA] = cost, [POINTS] = points, [TIME] = micros, [CONTENT] = content, [OTHER_TIME] = 0 }
local shown, used, reset, shadowed = 0, 0, 0, 0

if operation == DECIDE then
  local exceeded = mine + others >= concurrent and CONCURRENT_BIT or 0
  local overs = {}
  for at = FIRST_LIMIT, #input, NUMBERS do
    local kind, id, seconds, step, limit = input[at], input[at + 2], input[at + 3], input[at + 4], input[at + 5]
    local needed = kind == TIME and 1 or amounts[kind]
    if needed > 0 then
      if at == FIRST_LIMIT then limit = quota end
      local over = spentIn(id, seconds, step) + needed - limit
      -- Even a limit of no time refuses only once its window is open.
      if over > 0 and not (kind == TIME and step == 0 and not findOpen(id, seconds)) then
        overs[at] = over
        exceeded = bit.bor(exceeded, bit.lshift(1, input[at + 1]))
      end
    end
  end
  shadowed = bit.band(exceeded, shadow)
  local refusing = exceeded - shadowed
  if refusing > 0 then
    -- The primary limit, else the one that lasts longest.
    local by, waitUntil, primaryUntil, seconds = CONCURRENT, 0, 0
    shown, used, reset, seconds = shownWindow()
    if reset == 0 then reset = opened + seconds end
    for at = FIRST_LIMIT, #input, NUMBERS do
      local kind, index, id, seconds, step = unpack(input, at, at + 4)
      if overs[at] and bit.band(refusing, bit.lshift(1, index)) > 0 then
        local e = freedIn(id, seconds, step, overs[at])
        if e == 0 then e = opened + seconds end
        if kind == QUOTA then primaryUntil = math.max(primaryUntil, e)
        elseif e > waitUntil then by, waitUntil = index, e end
      end
    end
    if primaryUntil > 0 then return { PRIMARY, primaryUntil, shadowed, shown, used, primaryUntil, ms } end
    return { by, waitUntil, shadowed, shown, used, reset, ms }
  end
end

for at = FIRST_LIMIT, #input, NUMBERS do
  local kind, amount = input[at], amounts[input[at]]
  -- All time begins together.
  local begins = (kind == TIME or kind == OTHER_TIME) and (operation == DECIDE or micros > 0)
  if spentMs > 0 then changeSpent(input[at + 2], input[at + 3], input[at + 4], amount)
  elseif amount > 0 or begins then addTo(input[at + 2], input[at + 3], input[at + 4], amount) end
end
if operation == FORGET then ids, useds, ends = { 0, 10, 11, 12, 13 }, { 0, 0, 0, 0, 0 }, { 0, 0, 0, 0, 0 } end
mine = operation == RENEW and count or math.max(0, mine + count)
mine = math.min(mine, 65535)
if operation == DECIDE then
  shown, used, reset = shownWindow()
  -- A request that costs nothing opens no window.
  if reset == 0 then reset = (math.floor(now / 3600) + 1) * 3600 end
end

local believed = mine > 0 and leaseEnd or 0
local id, e, held = 0, 0, 0
if #ids > 5 then id, e, held = ids[6], ends[6], useds[6] end
local body = struct.pack('<I1I4I4I4I2I2I6I4I4I4I4I4I4I4I2I4I4I4', VERSION, ends[1], ends[2], ends[3], #leases,
  #ids > 5 and #ids - 6 or 0, id, e, held, useds[1], useds[2], useds[3], gateway, believed, mine, useds[4], useds[5], ends[4])
for _, other in ipairs(leases) do body = body .. struct.pack('<I2I4I4', unpack(other)) end
for n = 7, #ids do body = body .. struct.pack('<I6I4I4', ids[n], useds[n], ends[n]) end
local latest = lastEnd(believed)
if latest <= now then
  if value then redis.call('DEL', key) end
elseif value and latest <= before then
  redis.call('SET', key, body, 'KEEPTTL')
else
  -- A value outlasts a server that stands still for as long as a lease.
  local seconds = tostring(latest - now + 1 + lease)
  local written
  if value then written = redis.call('SET', key, body, 'EX', seconds)
  else written = redis.call('SET', key, body, 'NX', 'EX', seconds) end
  -- A value of another type, which could not be read.
  if not written then return { FOREIGN, 0, 0, 0, 0, 0, ms } end
end
if operation ~= DECIDE then return ms end
return { -1, 0, shadowed, shown, used, reset, ms }
