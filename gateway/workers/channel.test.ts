import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Channel, ChannelClosed, type Port } from './channel.ts';

/** A pipe whose other side has gone: as in Node, a message without a listener ends the process. */
function closedPort(): Port & { receive: (message: object) => void } {
  let listener: (message: unknown) => void = () => undefined;
  return {
    send: (_message, sent) => {
      if (sent === undefined) throw new Error('an error without a listener');
      sent(new Error('Channel closed'));
    },
    on: (_event, each) => (listener = each),
    receive: (message) => listener(message),
  };
}

test('calls, notices and answers on a closed pipe end nothing; a call says that it is closed', async () => {
  const port = closedPort();
  const answered = Promise.withResolvers<void>();
  const failed = Promise.withResolvers<void>();
  const channel = new Channel(port, {
    ask: () => answered.resolve(),
    later: async () => {
      failed.resolve();
      await Promise.reject(new Error('a failure of the handler'));
    },
  });
  channel.notify('changed', 1);
  await assert.rejects(channel.call('ask', 1), ChannelClosed);
  port.receive({ call: 1, name: 'ask', argument: 1 });
  port.receive({ call: 2, name: 'later', argument: 1 });
  await Promise.all([answered.promise, failed.promise]);
  await new Promise(setImmediate); // an answer that nobody listens to would have ended this process
});
