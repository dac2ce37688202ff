/** An entry of a log file, or of the buffer of a delivery. */
export type Entry = Readonly<{
  /** Number of the line in its buffer; 0 in a log file. */
  seq: number;
  text: Buffer;
  /** The text, with replacement characters for invalid bytes. */
  string: string;
  isStdout: boolean;
  /** RFC 3339, UTC, nine digits of the fraction: texts compare as their times do. */
  time: string;
  attributes: Readonly<Record<string, string>>;
}>;

const UTC_TIME = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z$/;
const NO_ATTRIBUTES = {};
/** The first bytes of an entry; an attribute called `log` begins alike. */
const BEGIN = '{"log":"';

/** Decodes a line; undefined for anything but an entry, such as half a line of a killed daemon. */
export function parseEntry(line: string): Entry | undefined {
  const value = parseLast(line);
  if (typeof value !== 'object' || value === null) return undefined;
  const entry = value as Readonly<Record<string, unknown>>;
  const time = fullTime(entry['time']);
  if (time === undefined) return undefined;
  const string = typeof entry['log'] === 'string' ? entry['log'] : '';
  return {
    seq: Number.isInteger(entry['seq']) ? Number(entry['seq']) : 0,
    text: typeof entry['raw'] === 'string' ? Buffer.from(entry['raw'], 'base64') : Buffer.from(string),
    string,
    isStdout: entry['stream'] !== 'stderr',
    time,
    attributes: attributesOf(entry['attrs']),
  };
}

/** Parses the line, or the entry behind an unfinished one: quotes inside of texts are escaped. */
function parseLast(line: string): unknown {
  for (let start = 0; start !== -1; start = line.indexOf(BEGIN, start + 1)) {
    try {
      return JSON.parse(line.slice(start));
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
    }
  }
  return undefined;
}

/** The time with all nine digits; other engines leave out zeros at the end, or write an offset. */
function fullTime(text: unknown): string | undefined {
  if (typeof text !== 'string') return undefined;
  const match = UTC_TIME.exec(text);
  if (match !== null) return `${match[1]}.${(match[2] ?? '').padEnd(9, '0')}Z`;
  try {
    return Temporal.Instant.from(text).toString({ fractionalSecondDigits: 9 });
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function attributesOf(value: unknown): Readonly<Record<string, string>> {
  if (typeof value !== 'object' || value === null) return NO_ATTRIBUTES;
  return Object.fromEntries(Object.entries(value).map(([name, text]) => [name, String(text)]));
}
