import type { Pattern } from '../../../lib/notations/pattern.ts';
import type { Line } from '../../delivery/line.ts';
import type { LogOptions } from '../../driver.ts';

/** An event of CloudWatch. */
export type LogEvent = Readonly<{ timestamp: number; message: string }>;

/** The events of the first `lines` lines; those behind them may become longer. */
type Events = Readonly<{ events: readonly LogEvent[]; lines: number }>;

/** Bytes of an event beside its text, as CloudWatch counts. */
export const EVENT_BYTES = 26;
const MAX_EVENT = 262_144 - EVENT_BYTES;
/** The part of a line in which a pattern is looked for. */
const PATTERN_CHARACTERS = 4096;

const DATE_PARTS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    '%a': '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)',
    '%A': '(?:Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)',
    '%w': '[0-6]',
    '%d': '(?:0[1-9]|[12][0-9]|3[01])',
    '%b': '(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)',
    '%B': '(?:January|February|March|April|May|June|July|August|September|October|November|December)',
    '%m': '(?:0[1-9]|1[0-2])',
    '%Y': String.raw`\d{4}`,
    '%y': String.raw`\d{2}`,
    '%H': '(?:[01][0-9]|2[0-3])',
    '%I': '(?:0[0-9]|1[0-2])',
    '%p': '[AP]M',
    '%M': '[0-5][0-9]',
    '%S': '[0-5][0-9]',
    '%f': String.raw`\d{6}`,
    '%z': String.raw`[+-]\d{4}`,
    '%Z': '[A-Z]{1,4}T',
    '%j': '(?:0[0-9][1-9]|[12][0-9][0-9]|3[0-5][0-9]|36[0-6])',
    '%L': String.raw`\.\d{3}`,
  }),
);

/** The pattern of a line that begins an event; empty: every line is one. */
export function multilinePattern(options: LogOptions): string {
  const { 'awslogs-datetime-format': format = '', 'awslogs-multiline-pattern': pattern = '' } = options;
  return format === '' ? pattern : format.replaceAll(/%./g, (part) => DATE_PARTS.get(part) ?? '');
}

/** Puts the pieces of long lines together. `isAll`: nothing follows. */
export function eventsByLine(lines: readonly Line[], isAll: boolean): Events {
  const open = new Map<string, { timestamp: number; text: string; at: number }>();
  const events: (LogEvent & { at: number })[] = [];
  const finish = (source: string): void => {
    const { timestamp, text, at } = open.get(source)!;
    open.delete(source);
    for (const message of piecesOf(text)) events.push({ timestamp, message, at });
  };
  for (const [at, { time, source, string, partial }] of lines.entries()) {
    const timestamp = time.epochMilliseconds;
    const begun = open.get(source);
    // A line that was cut off by the end of a run is not continued by the next one.
    if (begun !== undefined && (partial === undefined || partial.ordinal === 1)) finish(source);
    const text = (open.get(source)?.text ?? '') + string;
    open.set(source, { timestamp, text, at: open.get(source)?.at ?? at });
    if (partial === undefined || partial.isLast || Buffer.byteLength(text) >= MAX_EVENT) finish(source);
  }
  if (isAll) for (const source of open.keys()) finish(source);
  let taken = lines.length;
  for (const { at } of open.values()) taken = Math.min(taken, at);
  return { events: inOrder(events.filter(({ at }) => at < taken)), lines: taken };
}

/** An event goes from a line that matches to the next one. */
export function eventsByPattern(lines: readonly Line[], isFirst: Pattern, isAll: boolean): Events {
  const events: LogEvent[] = [];
  let from = 0;
  let text = '';
  const finish = (to: number): void => {
    const timestamp = lines[from]?.time.epochMilliseconds ?? 0;
    for (const message of piecesOf(text)) events.push({ timestamp, message });
    from = to;
    text = '';
  };
  for (const [at, { string, partial }] of lines.entries()) {
    const begins = (partial === undefined || partial.ordinal === 1) && isFirst(string.slice(0, PATTERN_CHARACTERS));
    if (begins || Buffer.byteLength(text) + Buffer.byteLength(string) > MAX_EVENT) finish(at);
    text += partial === undefined || partial.isLast ? `${string}\n` : string;
  }
  if (isAll) finish(lines.length);
  return { events: inOrder(events), lines: from };
}

/** CloudWatch wants them so; a sort keeps the order of those of one time. */
function inOrder(events: readonly LogEvent[]): LogEvent[] {
  return events.map(({ timestamp, message }) => ({ timestamp, message })).toSorted((a, b) => a.timestamp - b.timestamp);
}

/** Split between two characters if it is longer than an event can be; none for an empty text. */
function piecesOf(text: string): string[] {
  if (Buffer.byteLength(text) <= MAX_EVENT) return text === '' ? [] : [text];
  const pieces: string[] = [];
  let piece = '';
  let bytes = 0;
  for (const letter of text) {
    const length = Buffer.byteLength(letter);
    if (bytes + length > MAX_EVENT) {
      pieces.push(piece);
      piece = '';
      bytes = 0;
    }
    piece += letter;
    bytes += length;
  }
  return [...pieces, piece];
}
