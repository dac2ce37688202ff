  -- Only what has changed.
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
      -- A value with leases outlasts a server that stands still for as long as a lease.
      local seconds = latest - now + 1
      if mine > 0 or keptLeases ~= '' then seconds = seconds + lease end
      if latest <= now then
        call('DEL', key)
      elseif value and latest == before and #value == #body then
        call('SETRANGE', key, '0', body)
      else
        local written
        if value then written = call('SET', key, body, 'EX', tostring(seconds))
        else written = call('SET', key, body, 'NX', 'EX', tostring(seconds)) end
        -- Something that is no string, which could not be read.
        if not written then for n = firstReply, replied do replies[n] = FOREIGN end end
      end
    end
  end
  end
end
return table.concat(replies)
