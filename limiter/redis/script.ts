/**
 * The decision inside Redis: the same steps as `memory/store.ts`, for a batch of requests in one call.
 *
 * A caller is one string value of 65 bytes: its version, when its fixed windows end, one other window, what all of these have
 * counted, a gateway's lease; further leases and windows follow. Nothing can come between the steps, and a caller's
 * value is read and written once for all of its operations. The time is the server's unless a test gives one.
 *
 * KEYS are callers. ARGV[1]: the rules; the kinds of decisions in this call; for each key how many operations, and for
 * each its kind, a number and an amount (`wire.ts`).
 *
 * A sliding window is as many of the further windows, with the same id, as it has steps (`window-form.ts`). The windows
 * that have a place of their own while they are fixed have ids that no category has.
 *
 * Leases: how many requests each gateway has under way, and until when that is believed. A gateway that was killed
 * renews nothing, so its requests stop counting.
 *
 * The answer is the time, then for each decision, for content and what is forgotten, which limit refuses (255: the value is none of ours), which do in shadow, until when, and the category's
 * count and reset. The highest bit of the shadow is a mark: of an admission, that more than half of the concurrent
 * requests are under way; of a refusal for these, that some of them are other gateways'.
 *
 * Most calls for a caller change what is counted and nothing else: then only those bytes are written. Numbers among the
 * arguments of a command are strings already, since Redis would format them as slowly as it can.
 */
export const SCRIPT = `
local input = ARGV[1]
local nowMs, at, gateway, lease, concurrent, restLimit, restSeconds, graphqlLimit, graphqlSeconds,
  cpuLimit, graphqlCpuLimit, cpuSeconds, minuteLimit, minuteSeconds, hourLimit, hourSeconds, shadow =
  struct.unpack('<dI4I4I4I4I4I4I4I4I4I4I4I4I4I4I4I4', input)
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
local END_GRAPHQL, CONTENT, FORGET, FIRST_DECISION, FIRST_KIND, KIND_BYTES = 1, 2, 4, 5, 73, 29
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
local leaseEnd = opened + lease -- rounded up like windows: a lease of one second must not be over at once
local replies, replied = { pack('<d', nowMs) }, 1

-- Of the caller that is worked on. A window that is not open ends at 0 and has counted 0.
local coreUsed, coreEnd, minuteUsed, minuteEnd, hourUsed, hourEnd, cpuUsed, graphqlUsed, cpuEnd
local windows, ids, useds, ends = 0, {}, {}, {}
-- Must all of the value be written?
local whole

local function find(id)
  for n = 1, windows do
    if ids[n] == id then return n end
  end
end

-- What was spent, and when the first of it no longer counts.
local function spentOf(id, seconds, step)
  if step == 0 then
    local n = find(id)
    if n and ends[n] <= now + seconds + 1 then return useds[n], ends[n] end
    return 0, 0
  end
  local sum, first = 0, 0
  for n = 1, windows do
    if ids[n] == id and useds[n] > 0 and ends[n] <= now + seconds + step + 1 then
      sum = sum + useds[n]
      if first == 0 or ends[n] < first then first = ends[n] end
    end
  end
  return sum, first
end

-- When so much of a sliding window no longer counts; 0: it never is so much.
local function freedAt(id, seconds, step, amount)
  local steps = {}
  for n = 1, windows do
    if ids[n] == id and ends[n] <= now + seconds + step + 1 then steps[#steps + 1] = n end
  end
  table.sort(steps, function(one, other) return ends[one] < ends[other] end)
  for _, n in ipairs(steps) do
    amount = amount - useds[n]
    if amount <= 0 then return ends[n] end
  end
  return 0
end

local function addTo(id, amount, seconds, step)
  local n
  local e = opened + seconds
  if step == 0 then
    n = find(id)
    if n and ends[n] > now + seconds + 1 then useds[n], ends[n], whole = 0, e, true end
  else
    e = (math.floor(now / step) + 1) * step + seconds
    for m = 1, windows do
      if ids[m] == id and ends[m] == e then n = m end
    end
  end
  if n ~= 1 then whole = true end
  if not n then
    windows = windows + 1
    n = windows
    ids[n], useds[n], ends[n] = id, 0, e
  end
  local used = useds[n] + amount
  useds[n] = used > LARGEST and LARGEST or used
  return n
end

local function addContent(count)
  if minuteStep > 0 then addTo(MINUTE, count, minuteSeconds, minuteStep)
  else
    if minuteEnd == 0 then minuteEnd, whole = opened + minuteSeconds, true end
    minuteUsed = minuteUsed + count
    if minuteUsed > LARGEST then minuteUsed = LARGEST end
  end
  if hourStep > 0 then addTo(HOUR, count, hourSeconds, hourStep)
  else
    if hourEnd == 0 then hourEnd, whole = opened + hourSeconds, true end
    hourUsed = hourUsed + count
    if hourUsed > LARGEST then hourUsed = LARGEST end
  end
end

local function openCpu()
  cpuUsed, graphqlUsed, cpuEnd, whole = 0, 0, opened + cpuSeconds, true
end

-- Mostly a decision is of the same kind as the one before: a kind is decoded when another one comes.
local current = 0
local flags, graphql, content, primary, category, ownShadow, limit, seconds, step, hash, points, ownMinute, ownHour

local function flagsOf(kind)
  return input:byte(FIRST_KIND + (kind - FIRST_DECISION) * KIND_BYTES)
end

local function takeFrom(id, amount, seconds, step)
  if step == 0 then
    local n = find(id)
    if not n then return end
    if n ~= 1 then whole = true end
    useds[n] = max(0, useds[n] - amount)
    return
  end
  -- The oldest goes first, so that the rest counts long enough.
  whole = true
  local steps = {}
  for n = 1, windows do
    if ids[n] == id then steps[#steps + 1] = n end
  end
  table.sort(steps, function(one, other) return ends[one] < ends[other] end)
  for _, n in ipairs(steps) do
    local taken = useds[n] < amount and useds[n] or amount
    useds[n], amount = useds[n] - taken, amount - taken
  end
end

-- Of the decision that is named: its window may be another one by now, which has nothing of it.
local function giveBack()
  if primary then
    if category == CORE and step == 0 then coreUsed = max(0, coreUsed - 1) else takeFrom(category, 1, seconds, step) end
  end
  if graphql then takeFrom(hash, points, graphqlSeconds, graphqlStep) else takeFrom(hash, points, restSeconds, restStep) end
  if content then
    if minuteStep > 0 then takeFrom(MINUTE, 1, minuteSeconds, minuteStep) else minuteUsed = max(0, minuteUsed - 1) end
    if hourStep > 0 then takeFrom(HOUR, 1, hourSeconds, hourStep) else hourUsed = max(0, hourUsed - 1) end
    takeFrom(hash + 1, 1, minuteSeconds, minuteStep)
    takeFrom(hash + 2, 1, hourSeconds, hourStep)
  end
end

for k = 1, #keys do
  local key, value = keys[k], values[k]
  -- What this version has not written is neither read nor overwritten: its requests are told so.
  local foreign = value and (#value < 65 or value:byte(1) ~= VERSION)
  local firstReply = replied + 1
  local operations, kind, number, amount
  operations, kind, number, amount, at = unpackStruct('<I2I2I2I4', input, at)

  -- Where ends of requests are all that a caller has here, they change ten bytes.
  local ended = false
  if operations == 1 and kind <= END_GRAPHQL and value and not foreign and cpuStep == 0 then
    local holder, believed, count, used, usedByGraphql, e = unpackStruct('<I4I4I2I4I4I4', value, 44)
    if holder == gateway and count >= number and believed > now and e > now and e <= lastCpu then
      used = used + amount
      if used > LARGEST then used = LARGEST end
      if kind == END_GRAPHQL then
        usedByGraphql = usedByGraphql + amount
        if usedByGraphql > LARGEST then usedByGraphql = LARGEST end
      end
      call('SETRANGE', key, '51', pack('<I2I4I4', count - number, used, usedByGraphql))
      ended = true
    end
  end

  if not ended then
  local changed = false
  whole = false
  local mine, others, moreLeases, keptLeases = 0, 0, 0, ''
  -- Until when the value is kept now at least, and until when other gateways' leases last.
  local before, latest = 0, 0
  windows = 0
  if value and not foreign then
    local leases, others = unpackStruct('<I2I2', value, 14)
    foreign = #value ~= 65 + 10 * leases + 14 * others
  end
  if value and not foreign then
    local moreWindows, count, holder, believed, id, used, e, p
    coreEnd, minuteEnd, hourEnd, moreLeases, moreWindows, id, e, used, coreUsed, minuteUsed, hourUsed, holder, believed,
      count, cpuUsed, graphqlUsed, cpuEnd, p = unpackStruct('<I4I4I4I2I2I6I4I4I4I4I4I4I4I2I4I4I4', value, 2)
    before = coreEnd
    if hourEnd > before then before = hourEnd end
    if minuteEnd > before then before = minuteEnd end
    if cpuEnd > before then before = cpuEnd end
    if e > before then before = e end
    if minuteEnd <= now or minuteEnd > lastMinute then minuteUsed, minuteEnd = 0, 0 end
    if hourEnd <= now or hourEnd > lastHour then hourUsed, hourEnd = 0, 0 end
    if cpuEnd <= now or cpuEnd > lastCpu then cpuUsed, graphqlUsed, cpuEnd = 0, 0, 0 end
    if holder == gateway then
      if believed > now and believed <= lastLease then mine = count end
    else
      whole = true
      if count > 0 and believed > now and believed <= lastLease then
        others = count
        keptLeases = pack('<I2I4I4', count, holder, believed)
        latest = believed
      end
    end
    if believed > before then before = believed end
    if e > now then
      windows = 1
      ids[1], useds[1], ends[1] = id, used, e
    end
    for _ = 1, moreLeases do
      count, holder, believed, p = unpackStruct('<I2I4I4', value, p)
      if believed > before then before = believed end
      if believed > now and believed <= lastLease then
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
    if windows ~= 1 + moreWindows or #keptLeases ~= 10 * moreLeases then whole = true end
  else
    coreUsed, coreEnd, minuteUsed, minuteEnd, hourUsed, hourEnd, cpuUsed, graphqlUsed, cpuEnd = 0, 0, 0, 0, 0, 0, 0, 0, 0
    whole = true
  end

  for n = 1, operations do
    if n > 1 then kind, number, amount, at = unpackStruct('<I2I2I4', input, at) end
    if foreign and kind == FORGET then
      call('DEL', key)
      replied = replied + 1
      replies[replied] = NOTHING
    elseif foreign then
      if kind == CONTENT or (kind >= FIRST_DECISION and flagsOf(kind) < ADDS_POINTS) then
        replied = replied + 1
        replies[replied] = FOREIGN
      end
    elseif kind >= FIRST_DECISION then
      if kind ~= current then
        current = kind
        flags, category, ownShadow, limit, seconds, hash, points, ownMinute, ownHour =
          unpackStruct('<I1I1I1I4I4I6I4I4I4', input, FIRST_KIND + (kind - FIRST_DECISION) * KIND_BYTES)
        seconds, step = span(seconds)
        graphql, content, primary = band(flags, 1) ~= 0, band(flags, 2) ~= 0, band(flags, 4) ~= 0
      end
      if flags >= GIVES_BACK then
        changed = true
        giveBack()
        mine = mine > 0 and mine - 1 or 0
      elseif flags >= ADDS_POINTS then
        changed = true
        if graphql then addTo(hash, amount, graphqlSeconds, graphqlStep) else addTo(hash, amount, restSeconds, restStep) end
      else
      local used, reset = 0, 0
      if category == CORE and step == 0 then
        if coreEnd > now and coreEnd <= now + seconds + 1 then used, reset = coreUsed, coreEnd end
      else
        used, reset = spentOf(category, seconds, step)
      end
      local exceeded = 0
      if primary and used >= limit then exceeded = 1 end

      local pointLimit, pointSeconds, pointStep = restLimit, restSeconds, restStep
      if graphql then pointLimit, pointSeconds, pointStep = graphqlLimit, graphqlSeconds, graphqlStep end
      local pointsAt, pointsUsed, pointsEnd = nil, 0, 0
      if points > 0 then
        if pointStep == 0 then
          pointsAt = windows > 0 and ids[1] == hash and 1 or find(hash)
          if pointsAt and ends[pointsAt] > now + pointSeconds + 1 then pointsAt = nil end
          if pointsAt then pointsUsed, pointsEnd = useds[pointsAt], ends[pointsAt] end
        else
          pointsUsed = spentOf(hash, pointSeconds, pointStep)
        end
        if pointsUsed + points > pointLimit then exceeded = exceeded + 2 end
      end
      if mine + others >= concurrent then exceeded = exceeded + 4 end
      local cpuNow, graphqlNow, cpuOpen = cpuUsed, graphqlUsed, cpuEnd > 0
      if cpuStep > 0 then
        cpuNow, graphqlNow, cpuOpen = spentOf(CPU, cpuSeconds, cpuStep), spentOf(GRAPHQL_CPU, cpuSeconds, cpuStep), true
      end
      if cpuNow >= cpuLimit and cpuOpen then exceeded = exceeded + 8 end
      if graphql and graphqlNow >= graphqlCpuLimit and cpuOpen then exceeded = exceeded + 16 end
      local minuteNow, hourNow = minuteUsed, hourUsed
      if content then
        if minuteStep > 0 then minuteNow = spentOf(MINUTE, minuteSeconds, minuteStep) end
        if hourStep > 0 then hourNow = spentOf(HOUR, hourSeconds, hourStep) end
        if minuteNow >= minuteLimit or (ownMinute < NONE and spentOf(hash + 1, minuteSeconds, minuteStep) >= ownMinute) then
          exceeded = exceeded + 32
        end
        if hourNow >= hourLimit or (ownHour < NONE and spentOf(hash + 2, hourSeconds, hourStep) >= ownHour) then
          exceeded = exceeded + 64
        end
      end

      local refusing = exceeded
      local inShadow = ownShadow == 0 and shadow or bor(shadow, ownShadow)
      if exceeded ~= 0 and inShadow ~= 0 then refusing = band(exceeded, bit.bnot(inShadow)) end
      if refusing ~= 0 then
        local by, waitUntil = 0, 0
        if band(refusing, 1) ~= 0 then
          if step > 0 then reset = freedAt(category, seconds, step, used + 1 - limit) end
          if reset == 0 then reset = opened + seconds end
          by, waitUntil = 1, reset
        else
          if reset == 0 then reset = opened + seconds end
          -- When a fixed window ends, or so much of a sliding one.
          local function lasts(index, e, id, window, windowStep, excess)
            if windowStep > 0 then e = freedAt(id, window, windowStep, excess) end
            if e == 0 then e = opened + window end
            if e > waitUntil then by, waitUntil = index, e end
          end
          if band(refusing, 4) ~= 0 then by = 3 end
          if band(refusing, 2) ~= 0 then
            lasts(2, pointsEnd, hash, pointSeconds, pointStep, pointsUsed + points - pointLimit)
          end
          if band(refusing, 8) ~= 0 then lasts(4, cpuEnd, CPU, cpuSeconds, cpuStep, cpuNow + 1 - cpuLimit) end
          if band(refusing, 16) ~= 0 then
            lasts(5, cpuEnd, GRAPHQL_CPU, cpuSeconds, cpuStep, graphqlNow + 1 - graphqlCpuLimit)
          end
          if band(refusing, 32) ~= 0 then
            if minuteNow >= minuteLimit then
              lasts(6, minuteEnd, MINUTE, minuteSeconds, minuteStep, minuteNow + 1 - minuteLimit)
            end
            local ownUsed, ownEnd = spentOf(hash + 1, minuteSeconds, minuteStep)
            if ownUsed >= ownMinute then
              lasts(6, ownEnd, hash + 1, minuteSeconds, minuteStep, ownUsed + 1 - ownMinute)
            end
          end
          if band(refusing, 64) ~= 0 then
            if hourNow >= hourLimit then lasts(7, hourEnd, HOUR, hourSeconds, hourStep, hourNow + 1 - hourLimit) end
            local ownUsed, ownEnd = spentOf(hash + 2, hourSeconds, hourStep)
            if ownUsed >= ownHour then lasts(7, ownEnd, hash + 2, hourSeconds, hourStep, ownUsed + 1 - ownHour) end
          end
        end
        local mark = by == 3 and others > 0 and 128 or 0
        replied = replied + 1
        replies[replied] = pack('<I1I1I4I4I4', by, band(exceeded, inShadow) + mark, waitUntil, used, reset)
      else
        changed = true
        if not primary then
          -- What costs nothing opens no window.
          if reset == 0 then used, reset = 0, (math.floor(now / 3600) + 1) * 3600 end
        elseif category == CORE and step == 0 then
          if reset == 0 then
            coreUsed, coreEnd, whole = 0, opened + seconds, true
          end
          coreUsed = coreUsed + 1
          if coreUsed > LARGEST then coreUsed = LARGEST end
          used, reset = coreUsed, coreEnd
        else
          local n = addTo(category, 1, seconds, step)
          if step > 0 then used, reset = spentOf(category, seconds, step)
          else used, reset = useds[n], ends[n] end
        end
        if points > 0 then
          if pointsAt == 1 and useds[1] + points <= LARGEST then useds[1] = useds[1] + points
          else addTo(hash, points, pointSeconds, pointStep) end
        end
        mine = mine + 1
        if cpuEnd == 0 and cpuStep == 0 then openCpu() end
        if content then
          addContent(1)
          if ownMinute < NONE then addTo(hash + 1, 1, minuteSeconds, minuteStep) end
          if ownHour < NONE then addTo(hash + 2, 1, hourSeconds, hourStep) end
        end
        local mark = (mine + others) * 2 > concurrent and 128 or 0
        replied = replied + 1
        replies[replied] = pack('<I1I1I4I4I4', 0, exceeded + mark, 0, used, reset)
      end
      end
    elseif kind <= END_GRAPHQL then
      changed = true
      mine = mine > number and mine - number or 0
      if amount > 0 and cpuStep > 0 then
        addTo(CPU, amount, cpuSeconds, cpuStep)
        if kind == END_GRAPHQL then addTo(GRAPHQL_CPU, amount, cpuSeconds, cpuStep) end
      elseif amount > 0 then
        if cpuEnd == 0 then openCpu() end
        cpuUsed = cpuUsed + amount
        if cpuUsed > LARGEST then cpuUsed = LARGEST end
        if kind == END_GRAPHQL then
          graphqlUsed = graphqlUsed + amount
          if graphqlUsed > LARGEST then graphqlUsed = LARGEST end
        end
      end
    elseif kind == CONTENT then
      changed = true
      addContent(amount)
      replied = replied + 1
      replies[replied] = NOTHING
    elseif kind == FORGET then
      changed, whole, windows = true, true, 0
      coreUsed, coreEnd, minuteUsed, minuteEnd, hourUsed, hourEnd, cpuUsed, graphqlUsed, cpuEnd = 0, 0, 0, 0, 0, 0, 0, 0, 0
      replied = replied + 1
      replies[replied] = NOTHING
    elseif mine ~= amount or amount > 0 then
      changed = true
      mine = amount
    end
  end

  if changed then
    if mine > 65535 then mine = 65535 end
    local believed = mine > 0 and leaseEnd or 0
    local id, used, e = 0, 0, 0
    if windows > 0 then id, used, e = ids[1], useds[1], ends[1] end
    if not whole and believed <= before then
      call('SETRANGE', key, '27',
        pack('<I4I4I4I4I4I4I2I4I4', used, coreUsed, minuteUsed, hourUsed, gateway, believed, mine, cpuUsed, graphqlUsed))
    else
      latest = max(latest, coreEnd, minuteEnd, hourEnd, cpuEnd, believed, e)
      local body = pack('<I1I4I4I4I2I2I6I4I4I4I4I4I4I4I2I4I4I4', VERSION, coreEnd, minuteEnd, hourEnd, #keptLeases / 10,
        windows > 1 and windows - 1 or 0, id, e, used, coreUsed, minuteUsed, hourUsed, gateway, believed, mine,
        cpuUsed, graphqlUsed, cpuEnd)
      if windows > 1 or keptLeases ~= '' then
        local parts = { body, keptLeases }
        for n = 2, windows do
          parts[n + 1] = pack('<I6I4I4', ids[n], useds[n], ends[n])
          if ends[n] > latest then latest = ends[n] end
        end
        body = table.concat(parts)
      end
      if latest <= now then
        call('DEL', key)
      elseif value and latest == before and #value == #body then
        call('SETRANGE', key, '0', body)
      else
        local written
        if value then written = call('SET', key, body, 'EX', tostring(latest - now + 1))
        else written = call('SET', key, body, 'NX', 'EX', tostring(latest - now + 1)) end
        -- Something that is no string, which could not be read.
        if not written then for n = firstReply, replied do replies[n] = FOREIGN end end
      end
    end
  end
  end
end
return table.concat(replies)
`;
