/** An entry of a log file, whatever its form. */
export type Entry = { text: Buffer; isStdout: boolean; time: Temporal.Instant; attributes: Record<string, string> };

/** A line in any form; undefined for anything but an entry, such as half a line of a killed daemon. */
export function parseEntry(line: string): Entry | undefined {
  // Quotes inside of text are escaped, so this can only be a new entry behind an unfinished one.
  const start = line.lastIndexOf('{"log":"');
  let value: unknown;
  try {
    value = JSON.parse(start > 0 ? line.slice(start) : line);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const entry: Record<string, unknown> = { ...value };
  const time = typeof entry['time'] === 'string' ? parseTime(entry['time']) : undefined;
  if (time === undefined) return undefined;
  const attributes: Record<string, string> = {};
  for (const [name, text] of Object.entries(entry['attrs'] ?? {})) attributes[name] = String(text);
  const log = typeof entry['log'] === 'string' ? entry['log'] : '';
  const text = typeof entry['raw'] === 'string' ? Buffer.from(entry['raw'], 'base64') : Buffer.from(log);
  return { text, isStdout: entry['stream'] !== 'stderr', time, attributes };
}

function parseTime(text: string): Temporal.Instant | undefined {
  try {
    return Temporal.Instant.from(text);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}
