/**
 * The decision inside Redis: the same steps as `memory/store.ts`, for a batch of requests in one call.
 *
 * A caller is one string value: fixed windows, other windows, leases. KEYS are callers, ARGV[1] the rules (`wire.ts`),
 * ARGV[2] for each key a count and its operations. Nothing can come between the steps, and a caller's operations
 * decode and encode its value only once. The time is the server's unless a test gives one.
 *
 * Leases: how many requests each gateway has under way, and until when that is believed. A gateway that was killed
 * renews nothing, so its requests stop counting.
 */
export const SCRIPT = `
local nowMs, gateway, lease, concurrent, restLimit, restSeconds, graphqlLimit, graphqlSeconds,
  cpuLimit, graphqlCpuLimit, cpuSeconds, minuteLimit, minuteSeconds, hourLimit, hourSeconds, shadow =
  struct.unpack('<dI4I4I4I4I4I4I4I4I4I4I4I4I4I4I4', ARGV[1])
if nowMs == 0 then
  local time = redis.call('TIME')
  nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
end
local now, opened = math.floor(nowMs / 1000), math.ceil(nowMs / 1000)
local values = redis.call('MGET', unpack(KEYS))
local input, at = ARGV[2], 1
local unpackStruct, pack, band, bor = struct.unpack, struct.pack, bit.band, bit.bor
local floor, min = math.floor, math.min
local LARGEST = 2147483647
local replies = { pack('<d', nowMs) }

local coreUsed, coreEnd, minuteUsed, minuteEnd, hourUsed, hourEnd, cpuUsed, graphqlUsed, cpuEnd
local windows, ids, useds, ends

local function isOpen(e, seconds) return e > now and e <= now + seconds + 1 end

local function find(id)
  for n = 1, windows do
    if ids[n] == id then return n end
  end
end

local function spentOf(id, seconds)
  local n = find(id)
  if n and isOpen(ends[n], seconds) then return useds[n], ends[n] end
  return 0, 0
end

local function addTo(id, amount, seconds)
  local n = find(id)
  if n and isOpen(ends[n], seconds) then
    useds[n] = min(LARGEST, useds[n] + amount)
    return n
  end
  if not n then
    windows = windows + 1
    n = windows
    ids[n] = id
  end
  useds[n], ends[n] = amount, opened + seconds
  return n
end

local function addContent(count)
  if isOpen(minuteEnd, minuteSeconds) then minuteUsed = min(LARGEST, minuteUsed + count)
  else minuteUsed, minuteEnd = count, opened + minuteSeconds end
  if isOpen(hourEnd, hourSeconds) then hourUsed = min(LARGEST, hourUsed + count)
  else hourUsed, hourEnd = count, opened + hourSeconds end
end

for k = 1, #KEYS do
  local value = values[k]
  local changed = false
  local mine, others, latest = 0, 0, 0
  local otherLeases = ''
  windows, ids, useds, ends = 0, {}, {}, {}
  if value and #value >= 40 then
    local windowCount, leaseCount, p
    coreUsed, coreEnd, minuteUsed, minuteEnd, hourUsed, hourEnd, cpuUsed, graphqlUsed, cpuEnd, windowCount, leaseCount, p =
      unpackStruct('<I4I4I4I4I4I4I4I4I4I2I2', value)
    for _ = 1, windowCount do
      local id, used, e
      id, used, e, p = unpackStruct('<I6I4I4', value, p)
      if e > now then
        windows = windows + 1
        ids[windows], useds[windows], ends[windows] = id, used, e
      end
    end
    for _ = 1, leaseCount do
      local holder, count, e
      holder, count, e, p = unpackStruct('<I4I2I4', value, p)
      if e > now and e <= now + 86400 then
        if holder == gateway then mine = count
        else
          others = others + count
          otherLeases = otherLeases .. string.sub(value, p - 10, p - 1)
          if e > latest then latest = e end
        end
      end
    end
  else
    coreUsed, coreEnd, minuteUsed, minuteEnd, hourUsed, hourEnd, cpuUsed, graphqlUsed, cpuEnd = 0, 0, 0, 0, 0, 0, 0, 0, 0
  end

  local operations
  operations, at = unpackStruct('<I2', input, at)
  for _ = 1, operations do
    local flags, category, limit, seconds, hash, points, ownMinute, ownHour, amount
    flags, category, limit, seconds, hash, points, ownMinute, ownHour, amount, at =
      unpackStruct('<I1I1I4I4I6I4I4I4I4', input, at)
    local kind, graphql, content, primary = band(flags, 3), band(flags, 4) ~= 0, band(flags, 8) ~= 0, band(flags, 16) ~= 0

    if kind == 0 then
      local used, reset = 0, 0
      if category == 0 then
        if isOpen(coreEnd, seconds) then used, reset = coreUsed, coreEnd end
      else
        used, reset = spentOf(category, seconds)
      end
      local pointLimit, pointSeconds = restLimit, restSeconds
      if graphql then pointLimit, pointSeconds = graphqlLimit, graphqlSeconds end

      local exceeded = 0
      if primary and used >= limit then exceeded = 1 end
      if points > 0 and spentOf(hash, pointSeconds) + points > pointLimit then exceeded = exceeded + 2 end
      if mine + others >= concurrent then exceeded = exceeded + 4 end
      local cpuOpen = isOpen(cpuEnd, cpuSeconds)
      if cpuOpen then
        if cpuUsed >= cpuLimit then exceeded = exceeded + 8 end
        if graphql and graphqlUsed >= graphqlCpuLimit then exceeded = exceeded + 16 end
      end
      if content then
        if (isOpen(minuteEnd, minuteSeconds) and minuteUsed or 0) >= minuteLimit
          or spentOf(hash + 1, minuteSeconds) >= ownMinute then exceeded = exceeded + 32 end
        if (isOpen(hourEnd, hourSeconds) and hourUsed or 0) >= hourLimit
          or spentOf(hash + 2, hourSeconds) >= ownHour then exceeded = exceeded + 64 end
      end

      local refusing = band(exceeded, bit.bnot(shadow))
      if refusing ~= 0 then
        if reset == 0 then reset = opened + seconds end
        local by, waitUntil = 0, 0
        if band(refusing, 1) ~= 0 then
          by, waitUntil = 1, reset
        else
          local function lasts(bitValue, index, e, window)
            if band(refusing, bitValue) == 0 then return end
            if not isOpen(e, window) then e = opened + window end
            if e > waitUntil then by, waitUntil = index, e end
          end
          if band(refusing, 4) ~= 0 then by = 3 end
          local _, pointsEnd = spentOf(hash, pointSeconds)
          lasts(2, 2, pointsEnd, pointSeconds)
          lasts(8, 4, cpuEnd, cpuSeconds)
          lasts(16, 5, cpuEnd, cpuSeconds)
          if (isOpen(minuteEnd, minuteSeconds) and minuteUsed or 0) >= minuteLimit then lasts(32, 6, minuteEnd, minuteSeconds) end
          local ownUsed, ownEnd = spentOf(hash + 1, minuteSeconds)
          if ownUsed >= ownMinute then lasts(32, 6, ownEnd, minuteSeconds) end
          if (isOpen(hourEnd, hourSeconds) and hourUsed or 0) >= hourLimit then lasts(64, 7, hourEnd, hourSeconds) end
          ownUsed, ownEnd = spentOf(hash + 2, hourSeconds)
          if ownUsed >= ownHour then lasts(64, 7, ownEnd, hourSeconds) end
        end
        replies[#replies + 1] = pack('<I1I1I4I4I4', by, band(exceeded, shadow), waitUntil, used, reset)
      else
        changed = true
        local cost = primary and 1 or 0
        if category == 0 then
          if reset ~= 0 then coreUsed = min(LARGEST, coreUsed + cost)
          else coreUsed, coreEnd = cost, opened + seconds end
          used, reset = coreUsed, coreEnd
        else
          local n = addTo(category, cost, seconds)
          used, reset = useds[n], ends[n]
        end
        if points > 0 then addTo(hash, points, pointSeconds) end
        mine = mine + 1
        if not cpuOpen then cpuUsed, graphqlUsed, cpuEnd = 0, 0, opened + cpuSeconds end
        if content then
          addContent(1)
          if ownMinute < 4294967295 then addTo(hash + 1, 1, minuteSeconds) end
          if ownHour < 4294967295 then addTo(hash + 2, 1, hourSeconds) end
        end
        replies[#replies + 1] = pack('<I1I1I4I4I4', 0, band(exceeded, shadow), 0, used, reset)
      end
    elseif kind == 1 then
      changed = true
      if mine > 0 then mine = mine - 1 end
      if amount > 0 then
        if not isOpen(cpuEnd, cpuSeconds) then cpuUsed, graphqlUsed, cpuEnd = 0, 0, opened + cpuSeconds end
        cpuUsed = min(LARGEST, cpuUsed + amount)
        if graphql then graphqlUsed = min(LARGEST, graphqlUsed + amount) end
      end
    elseif kind == 2 then
      changed = true
      addContent(amount)
    elseif mine ~= amount or amount > 0 then
      changed = true
      mine = amount
    end
  end

  if changed then
    if coreEnd > latest then latest = coreEnd end
    if minuteEnd > latest then latest = minuteEnd end
    if hourEnd > latest then latest = hourEnd end
    if cpuEnd > latest then latest = cpuEnd end
    local body = ''
    for n = 1, windows do
      body = body .. pack('<I6I4I4', ids[n], useds[n], ends[n])
      if ends[n] > latest then latest = ends[n] end
    end
    local leases = #otherLeases / 10
    local own = ''
    if mine > 0 then
      own = pack('<I4I2I4', gateway, min(65535, mine), now + lease)
      leases = leases + 1
      if now + lease > latest then latest = now + lease end
    end
    if latest <= now then
      redis.call('DEL', KEYS[k])
    else
      redis.call('SET', KEYS[k], pack('<I4I4I4I4I4I4I4I4I4I2I2', coreUsed, coreEnd, minuteUsed, minuteEnd, hourUsed, hourEnd,
        cpuUsed, graphqlUsed, cpuEnd, windows, leases) .. body .. own .. otherLeases, 'EX', latest - now + 1)
    end
  end
end
return table.concat(replies)
`;
