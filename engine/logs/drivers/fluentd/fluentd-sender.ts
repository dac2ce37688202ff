import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';

import { encode, ExtData } from '@msgpack/msgpack';

import { booleanOption } from '../../boolean-option.ts';
import type { Line } from '../../delivery/line.ts';
import type { Sender, SenderContext } from '../../delivery/sender.ts';
import type { LogOptions } from '../../driver.ts';
import { extraAttributes } from '../../log-attributes.ts';
import type { HostAndPort } from '../../receivers/address.ts';
import { Connection } from '../../receivers/connection.ts';
import { tagOf } from '../../tag.ts';
import { Acknowledgements } from './fluentd-acknowledgements.ts';

const LIMITS = { lines: 500, bytes: 128 * 1024 };
const EVENT_TIME = 0;

/** Sends over one connection, which is made with the first lines. */
export function fluentdSender(
  context: SenderContext,
  addressOf: (options: LogOptions) => HostAndPort | { path: string },
): Sender {
  const { container, options, clock } = context;
  const tag = tagOf(container, '{{.ID}}');
  const entry = entriesOf(context);
  const wantsAck = booleanOption(options['fluentd-request-ack']);
  const acknowledgements = new Acknowledgements(clock);
  const connection = new Connection({
    ...context,
    ready: 'connect',
    open: () => connect(addressOf(options)),
    data: (bytes) => acknowledgements.take(bytes),
    broken: () => {
      acknowledgements.fail(new Error('the receiver closed the connection'));
      context.broken();
    },
  });
  return {
    limits: LIMITS,
    recalls: !wantsAck,
    send: async (lines) => {
      const entries = lines.map(entry);
      if (!wantsAck) return await connection.write(Buffer.concat(entries.map((each) => encode([tag, ...each, {}]))));
      // One answer for all of them.
      const chunk = randomBytes(16).toString('base64');
      await connection.write(Buffer.from(encode([tag, entries, { chunk }])));
      await acknowledgements.of(chunk);
    },
    end: async () => await connection.end(),
    [Symbol.dispose]: () => {
      acknowledgements.fail(new Error('the delivery ends'));
      connection[Symbol.dispose]();
    },
  };
}

/** Time and record of a line. */
function entriesOf({ container, options }: SenderContext): (line: Line) => [number | ExtData, Record<string, unknown>] {
  const isPrecise = booleanOption(options['fluentd-sub-second-precision']);
  const extra = extraAttributes(container);
  return ({ time, source, text, string, partial }) => [
    isPrecise ? eventTime(time) : Math.floor(time.epochMilliseconds / 1000),
    {
      container_id: container.id,
      container_name: `/${container.name}`,
      source,
      // Invalid text is sent as bytes: both are strings for fluentd.
      log: Buffer.from(string).equals(text) ? string : text,
      ...extra,
      ...(partial && {
        partial_message: 'true',
        partial_id: partial.id,
        partial_ordinal: String(partial.ordinal),
        partial_last: String(partial.isLast),
      }),
    },
  ];
}

/** Seconds and nanoseconds, four bytes each. */
function eventTime(time: Temporal.Instant): ExtData {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt32BE(Number(time.epochNanoseconds / 1_000_000_000n), 0);
  bytes.writeUInt32BE(Number(time.epochNanoseconds % 1_000_000_000n), 4);
  return new ExtData(EVENT_TIME, bytes);
}
