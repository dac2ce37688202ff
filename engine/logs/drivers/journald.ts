import type { Line } from '../delivery/line.ts';
import type { SenderContext } from '../delivery/sender.ts';
import { extraAttributes } from '../log-attributes.ts';
import { LocalDatagrams } from '../receivers/local-datagrams.ts';
import { checkTag, tagOf } from '../tag.ts';
import { deliveringDriver } from './delivering.ts';

const SOCKET = '/run/systemd/journal/socket';
const LIMITS = { lines: 500, bytes: 128 * 1024 };
const INFO = '6';
const ERROR = '3';
const NEWLINE = 0x0a;

/** The journal of systemd, by its native protocol. */
export const journald = deliveringDriver({
  name: 'journald',
  options: ['labels', 'labels-regex', 'env', 'env-regex', 'tag'],
  check: (options) => checkTag(options['tag']),
  deliver: (context) => {
    const tooLong = (): void => context.refused(1, 'it is longer than a message of the journal can be');
    const datagrams = new LocalDatagrams({ ...context, paths: [SOCKET], tooLong });
    const entry = entriesOf(context);
    return {
      limits: LIMITS,
      recalls: false,
      send: async (lines) => await datagrams.send(lines.map(entry)),
      end: async () => await datagrams.end(),
      [Symbol.dispose]: () => datagrams[Symbol.dispose](),
    };
  },
});

/** The journal's own time of an entry is that of its arrival, so the line's time is a separate field. */
function entriesOf({ container }: SenderContext): (line: Line) => Buffer {
  const tag = tagOf(container, '{{.ID}}');
  const attributes = Object.entries(extraAttributes(container)).map(([key, value]) => [fieldName(key), value] as const);
  const constant = {
    CONTAINER_ID: container.id.slice(0, 12),
    CONTAINER_ID_FULL: container.id,
    CONTAINER_NAME: container.name,
    CONTAINER_TAG: tag,
    IMAGE_NAME: container.imageName,
    SYSLOG_IDENTIFIER: tag,
    ...Object.fromEntries(attributes),
  };
  return ({ text, time, source, partial }) => {
    const fields = {
      PRIORITY: source === 'stderr' ? ERROR : INFO,
      SYSLOG_TIMESTAMP: time.toString(),
      ...constant,
      ...(partial && {
        CONTAINER_PARTIAL_ID: partial.id,
        CONTAINER_PARTIAL_ORDINAL: String(partial.ordinal),
        CONTAINER_PARTIAL_LAST: String(partial.isLast),
        ...(!partial.isLast && { CONTAINER_PARTIAL_MESSAGE: 'true' }),
      }),
    };
    const pairs = Object.entries(fields).map(([name, value]) => field(name, Buffer.from(value)));
    return Buffer.concat([...pairs, field('MESSAGE', text)]);
  };
}

/** `NAME=value`, or with its length where the value has several lines. */
function field(name: string, value: Buffer): Buffer {
  const end = Buffer.from('\n');
  if (!value.includes(NEWLINE)) return Buffer.concat([Buffer.from(`${name}=`), value, end]);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(value.length));
  return Buffer.concat([Buffer.from(`${name}\n`), length, value, end]);
}

/** Capital letters, digits and underscores, but no underscore at the beginning: those are the journal's own. */
function fieldName(key: string): string {
  return key
    .replaceAll(/[a-z]/g, (letter) => letter.toUpperCase())
    .replaceAll(/[^A-Z0-9]/gu, '_')
    .replace(/^_+/, '');
}
