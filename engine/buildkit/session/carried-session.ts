import { Duplex, PassThrough, Readable } from 'node:stream';

import { BytesMessage } from '../messages/session.ts';
import type { Method } from '../wire/service.ts';

/** The types of Node name streams of the web alone. */
type Both = Parameters<typeof Duplex.from>[0];
type Open = (connection: Duplex, call: Parameters<Method>[1]) => Readonly<{ closed: AbortSignal }>;

/** The method `Control/Session`: a session within a call, whose messages carry its connection. */
export function carriedSession(open: Open): Method {
  return async function* carry(requests, call) {
    const answers = new PassThrough();
    const received = Readable.from(bytesIn(requests), { objectMode: false });
    const connection = Duplex.from({ readable: received, writable: answers } as object as Both);
    connection.on('error', () => answers.destroy()); // the session is closed
    const end = (): void => void connection.destroy();
    call.signal.addEventListener('abort', end, { once: true });
    try {
      const { closed } = open(connection, call);
      closed.addEventListener('abort', () => answers.end(), { once: true });
      for await (const data of answers as AsyncIterable<Buffer>) yield BytesMessage.encode({ data });
    } finally {
      call.signal.removeEventListener('abort', end);
      end();
    }
  };
}

/** Copies: a stream asks for the next piece before it hands out the last one. */
async function* bytesIn(requests: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const message of requests) {
    const { data } = BytesMessage.decode(message);
    if (data.length > 0) yield Buffer.from(data);
  }
}
