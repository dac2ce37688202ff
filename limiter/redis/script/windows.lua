-- Of the caller that is worked on. A window that is not open ends at 0 and has counted 0.
local coreUsed, coreEnd, minuteUsed, minuteEnd, hourUsed, hourEnd, cpuUsed, graphqlUsed, cpuEnd
local windows, ids, useds, ends = 0, {}, {}, {}
-- Whether the whole value must be written.
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
