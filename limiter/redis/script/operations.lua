  -- The caller's operations, in their order.
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
