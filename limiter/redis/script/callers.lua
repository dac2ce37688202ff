-- Each caller's value is read here, changed by what follows, and written in the end.
for k = 1, #keys do
  local key, value = keys[k], values[k]
  -- What this version has not written is neither read nor overwritten: its requests are told so.
  local foreign = value and (#value < 65 or value:byte(1) ~= VERSION)
  local firstReply = replied + 1
  local operations, kind, number, amount
  operations, kind, number, amount, at = unpackStruct('<I2I2I2I4', input, at)

  -- Where a caller has only ends of requests here, they change ten bytes.
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
      mine = count
    else
      whole = true
      if count > 0 and believed > leaseNow and believed <= lastLease then
        others = count
        if believed <= now then believed = renewedBy end
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
      if holder == gateway then mine = count
      elseif believed > leaseNow and believed <= lastLease then
        others = others + count
        if believed <= now then believed = renewedBy end
        keptLeases = keptLeases .. pack('<I2I4I4', count, holder, believed)
        if believed > latest then latest = believed end
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
