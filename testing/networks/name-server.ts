/**
 * A name server for tests, over UDP and TCP, as a program: `node name-server.ts ADDRESS`.
 *
 * It answers every question for an address with 198.51.100.N, where N counts the questions, for 3600 seconds; names that
 * begin with `short` for one second, `missing…` not at all (NXDOMAIN), `silent…` never, `held…` by UDP with the next question
 * that begins with `release`. `many…` has 100 addresses. Each question is told on a line of stdout.
 */
import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';

const [address = ''] = process.argv.slice(2);
let count = 0;

function answerTo(query: Buffer, limit: number): Buffer | undefined {
  const end = query.indexOf(0, 12) + 5;
  const name = labels(query.subarray(12, end - 4));
  count += 1;
  process.stdout.write(`${name}\n`);
  if (name.startsWith('silent')) return undefined;
  const head = Buffer.from(query.subarray(0, end));
  head[2] = 0x81;
  head[3] = name.startsWith('missing') ? 0x83 : 0x80;
  const addresses = name.startsWith('many') ? 100 : name.startsWith('missing') ? 0 : 1;
  head.writeUInt16BE(0, 8);
  head.writeUInt16BE(0, 10);
  if (end + addresses * 16 > limit) {
    head[2] |= 2;
    head.writeUInt16BE(0, 6);
    return head;
  }
  head.writeUInt16BE(addresses, 6);
  const records = Array.from({ length: addresses }, (_, n) => {
    const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 198, 51, 100, addresses > 1 ? n : count]);
    record.writeUInt32BE(name.startsWith('short') ? 1 : 3600, 6);
    return record;
  });
  return Buffer.concat([head, ...records]);
}

function labels(bytes: Buffer): string {
  const found: string[] = [];
  for (let at = 0; bytes[at]! > 0; at += bytes[at]! + 1)
    found.push(bytes.toString('latin1', at + 1, at + 1 + bytes[at]!));
  return found.join('.');
}

const udp = createSocket('udp4');
const held: (() => void)[] = [];
udp.on('message', (query, { port, address: from }) => {
  const answer = answerTo(query, 512);
  if (answer === undefined) return;
  const name = labels(query.subarray(12)).toLowerCase();
  const send = (): void => udp.send(answer, port, from);
  if (name.startsWith('held')) held.push(send);
  else send();
  if (name.startsWith('release')) for (const late of held.splice(0)) late();
});
createServer((client) => {
  client.on('error', () => client.destroy());
  client.on('data', (data) => {
    const answer = answerTo(Buffer.from(data).subarray(2), 65_535);
    if (answer === undefined) return;
    const length = Buffer.alloc(2);
    length.writeUInt16BE(answer.length);
    client.write(Buffer.concat([length, answer]));
  });
}).listen(53, address, () => udp.bind(53, address, () => process.stdout.write('ready\n')));
