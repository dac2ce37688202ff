-- A decision is mostly of the same kind as the one before: a kind is decoded only when it changes.
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

-- Of the decision that is named: a newer window has nothing of it.
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
