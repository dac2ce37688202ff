/**
 * The decision inside Redis: the same steps as `memory/store.ts`, for a batch of requests in one call.
 *
 * A caller is one string value of 64 bytes: fixed windows, this or another gateway's lease, one other window; further
 * leases and windows follow. KEYS are callers, ARGV[1] the rules (`wire.ts`),
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
local unpackStruct, pack, band = struct.unpack, struct.pack, bit.band
local min, max, call, byte, sub = math.min, math.max, redis.call, string.byte, string.sub
local LARGEST, NONE = 2147483647, 4294967295
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

-- Mostly one operation is like the one before: it is decoded once.
local decoded = ''
local flags, category, limit, seconds, hash, points, ownMinute, ownHour, amount
local kind, graphql, content, primary

ids, useds, ends = {}, {}, {}
for k = 1, #KEYS do
  local value = values[k]
  local operations
  operations, at = unpackStruct('<I2', input, at)

  -- Most calls for a caller are one end of a request, which changes ten bytes in the middle of the value.
  local ended = false
  if operations == 1 and value and #value >= 64 and byte(input, at) % 4 == 1 then
    local e, used, usedByGraphql, count, holder, believed = unpackStruct('<I4I4I4I2I4I4', value, 29)
    if holder == gateway and count > 0 and believed > now and isOpen(e, cpuSeconds) then
      local amount = unpackStruct('<I4', input, at + 28)
      used = min(LARGEST, used + amount)
      if byte(input, at) % 8 >= 4 then usedByGraphql = min(LARGEST, usedByGraphql + amount) end
      call('SETRANGE', KEYS[k], 32, pack('<I4I4I2', used, usedByGraphql, count - 1))
      at = at + 32
      ended = true
    end
  end

  if not ended then
  local changed = false
  local mine, others, moreLeases, keptLeases = 0, 0, 0, ''
  -- Until when the value is kept now, and has to be kept afterwards.
  local before, latest = 0, 0
  windows = 0
  if value and #value >= 64 then
    local moreWindows, count, holder, believed, id, used, e, p
    coreUsed, coreEnd, minuteUsed, minuteEnd, hourUsed, hourEnd, moreLeases, moreWindows, cpuEnd, cpuUsed, graphqlUsed,
      count, holder, believed, id, used, e, p = unpackStruct('<I4I4I4I4I4I4I2I2I4I4I4I2I4I4I6I4I4', value)
    before = max(coreEnd, minuteEnd, hourEnd, cpuEnd, believed, e)
    if count > 0 and believed > now and believed <= now + 86400 then
      if holder == gateway then mine = count
      else
        others = count
        keptLeases = pack('<I2I4I4', count, holder, believed)
        latest = believed
      end
    end
    if e > now then
      windows = 1
      ids[1], useds[1], ends[1] = id, used, e
    end
    for _ = 1, moreLeases do
      count, holder, believed, p = unpackStruct('<I2I4I4', value, p)
      if believed > before then before = believed end
      if believed > now and believed <= now + 86400 then
        if holder == gateway then mine = count
        else
          others = others + count
          keptLeases = keptLeases .. pack('<I2I4I4', count, holder, believed)
          if believed > latest then latest = believed end
        end
      end
    end
    for _ = 1, moreWindows do
      id, used, e, p = unpackStruct('<I6I4I4', value, p)
      if e > before then before = e end
      if e > now then
        windows = windows + 1
        ids[windows], useds[windows], ends[windows] = id, used, e
      end
    end
  else
    coreUsed, coreEnd, minuteUsed, minuteEnd, hourUsed, hourEnd, cpuUsed, graphqlUsed, cpuEnd = 0, 0, 0, 0, 0, 0, 0, 0, 0
  end

  for _ = 1, operations do
    local encoded = sub(input, at, at + 31)
    at = at + 32
    if encoded ~= decoded then
      decoded = encoded
      flags, category, limit, seconds, hash, points, ownMinute, ownHour, amount =
        unpackStruct('<I1I1I4I4I6I4I4I4I4', encoded)
      kind, graphql, content, primary = band(flags, 3), band(flags, 4) ~= 0, band(flags, 8) ~= 0, band(flags, 16) ~= 0
    end

    if kind == 0 then
      local used, reset = 0, 0
      if category == 0 then
        if coreEnd > now and coreEnd <= now + seconds + 1 then used, reset = coreUsed, coreEnd end
      else
        used, reset = spentOf(category, seconds)
      end
      local exceeded = 0
      if primary and used >= limit then exceeded = 1 end

      local pointLimit, pointSeconds = restLimit, restSeconds
      if graphql then pointLimit, pointSeconds = graphqlLimit, graphqlSeconds end
      local pointsAt = nil
      if points > 0 then
        pointsAt = find(hash)
        if pointsAt and not isOpen(ends[pointsAt], pointSeconds) then pointsAt = nil end
        if (pointsAt and useds[pointsAt] or 0) + points > pointLimit then exceeded = exceeded + 2 end
      end
      if mine + others >= concurrent then exceeded = exceeded + 4 end
      local cpuOpen = cpuEnd > now and cpuEnd <= now + cpuSeconds + 1
      if cpuOpen then
        if cpuUsed >= cpuLimit then exceeded = exceeded + 8 end
        if graphql and graphqlUsed >= graphqlCpuLimit then exceeded = exceeded + 16 end
      end
      if content then
        if not isOpen(minuteEnd, minuteSeconds) then minuteUsed, minuteEnd = 0, 0 end
        if not isOpen(hourEnd, hourSeconds) then hourUsed, hourEnd = 0, 0 end
        if minuteUsed >= minuteLimit or (ownMinute < NONE and spentOf(hash + 1, minuteSeconds) >= ownMinute) then
          exceeded = exceeded + 32
        end
        if hourUsed >= hourLimit or (ownHour < NONE and spentOf(hash + 2, hourSeconds) >= ownHour) then
          exceeded = exceeded + 64
        end
      end

      local refusing = exceeded
      if exceeded ~= 0 and shadow ~= 0 then refusing = band(exceeded, bit.bnot(shadow)) end
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
          lasts(2, 2, pointsAt and ends[pointsAt] or 0, pointSeconds)
          lasts(8, 4, cpuEnd, cpuSeconds)
          lasts(16, 5, cpuEnd, cpuSeconds)
          if minuteUsed >= minuteLimit then lasts(32, 6, minuteEnd, minuteSeconds) end
          local ownUsed, ownEnd = spentOf(hash + 1, minuteSeconds)
          if ownUsed >= ownMinute then lasts(32, 6, ownEnd, minuteSeconds) end
          if hourUsed >= hourLimit then lasts(64, 7, hourEnd, hourSeconds) end
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
        if pointsAt then useds[pointsAt] = min(LARGEST, useds[pointsAt] + points)
        elseif points > 0 then addTo(hash, points, pointSeconds) end
        mine = mine + 1
        if not cpuOpen then cpuUsed, graphqlUsed, cpuEnd = 0, 0, opened + cpuSeconds end
        if content then
          addContent(1)
          if ownMinute < NONE then addTo(hash + 1, 1, minuteSeconds) end
          if ownHour < NONE then addTo(hash + 2, 1, hourSeconds) end
        end
        replies[#replies + 1] = pack('<I1I1I4I4I4', 0, exceeded, 0, used, reset)
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
    latest = max(latest, coreEnd, minuteEnd, hourEnd, cpuEnd)
    local believed = 0
    if mine > 0 then
      believed = opened + lease -- rounded up like windows: a lease of one second must not be over at once
      if believed > latest then latest = believed end
    end
    local id, used, e = 0, 0, 0
    if windows > 0 then id, used, e = ids[1], useds[1], ends[1] end
    if e > latest then latest = e end
    local body = pack('<I4I4I4I4I4I4I2I2I4I4I4I2I4I4I6I4I4', coreUsed, coreEnd, minuteUsed, minuteEnd, hourUsed, hourEnd,
      #keptLeases / 10, max(0, windows - 1), cpuEnd, cpuUsed, graphqlUsed, min(65535, mine), gateway, believed, id, used, e)
    if windows > 1 or keptLeases ~= '' then
      local parts = { body, keptLeases }
      for n = 2, windows do
        parts[n + 1] = pack('<I6I4I4', ids[n], useds[n], ends[n])
        if ends[n] > latest then latest = ends[n] end
      end
      body = table.concat(parts)
    end
    if latest <= now then
      call('DEL', KEYS[k])
    elseif value and latest == before and #value == #body then
      call('SETRANGE', KEYS[k], 0, body)
    else
      call('SET', KEYS[k], body, 'EX', latest - now + 1)
    end
  end
  end
end
return table.concat(replies)
`;
