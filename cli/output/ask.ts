import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';

import { Exit } from '../exit-codes.ts';

/** Asks on the terminal; the answer to a secret question is not shown. */
export async function ask(question: string, isSecret = false): Promise<string> {
  process.stderr.write(question);
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const input = createInterface({ input: process.stdin, output: isSecret ? silent : process.stderr, terminal: true });
  try {
    const { promise, reject } = Promise.withResolvers<never>();
    input.once('SIGINT', () => reject(new Exit(130)));
    return await Promise.race([input.question(''), promise]);
  } finally {
    input.close();
    if (isSecret) process.stderr.write('\n');
  }
}
