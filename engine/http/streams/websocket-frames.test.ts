import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';

import { encodeMessage, MessageDecoder } from './websocket-frames.ts';

const MASK = [0x11, 0x22, 0x33, 0x44];

/** A frame as a client sends it. */
function masked(first: number, payload: Buffer): Buffer {
  const lengthBytes = payload.length < 126 ? [] : [payload.length >> 8, payload.length & 0xff];
  const short = lengthBytes.length === 0 ? payload.length : 126;
  const hidden = payload.map((byte, i) => byte ^ MASK[i % 4]!);
  return Buffer.from([first, 0x80 | short, ...lengthBytes, ...MASK, ...hidden]);
}

function decode(pieces: Buffer[]): { data: string; pings: string[]; closed: boolean; valid: boolean } {
  const result = { data: '', pings: [] as string[], closed: false, valid: true };
  const decoder = new MessageDecoder({
    onData: (bytes) => (result.data += bytes.toString('latin1')),
    onPing: (payload) => result.pings.push(payload.toString()),
    onClose: () => (result.closed = true),
  });
  result.valid = pieces.every((piece) => decoder.push(piece));
  return result;
}

test('a message is encoded with the shortest length there is', async (t) => {
  const cases: [number, number[]][] = [
    [0, [0x82, 0]],
    [125, [0x82, 125]],
    [126, [0x82, 126, 0, 126]],
    [65_535, [0x82, 126, 0xff, 0xff]],
    [65_536, [0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0]],
  ];
  for (const [length, head] of cases) {
    await t.test(`${length} bytes`, () => {
      const frame = encodeMessage('binary', Buffer.alloc(length, 7));

      assert.deepEqual([...frame.subarray(0, head.length)], head);
      assert.equal(frame.length, head.length + length);
    });
  }
});

test('frames are decoded however they are cut', () => {
  const stream = Buffer.concat([
    masked(0x81, Buffer.from('hello ')),
    masked(0x02, Buffer.from('frag')), // the first part of a message, with a ping in between
    masked(0x89, Buffer.from('you?')),
    masked(0x80, Buffer.from('ments ')),
    masked(0x82, Buffer.alloc(0)),
    masked(0x82, Buffer.alloc(300, 0x61)),
    masked(0x8a, Buffer.from('pong')),
    masked(0x88, Buffer.from([3, 0xe8])),
    Buffer.from('not read'),
  ]);
  const expected = { data: `hello fragments ${'a'.repeat(300)}`, pings: ['you?'], closed: true, valid: true };

  for (const size of [1, 2, 3, 7, 64, stream.length]) {
    const pieces: Buffer[] = [];
    for (let at = 0; at < stream.length; at += size) pieces.push(stream.subarray(at, at + size));

    assert.deepEqual(decode(pieces), expected, `in pieces of ${size}`);
  }
});

test('frames against the protocol are refused', async (t) => {
  const cases: [string, Buffer][] = [
    ['not masked', Buffer.from([0x81, 1, 0x61])],
    ['a reserved bit', masked(0xc1, Buffer.from('x'))],
    ['an unknown kind', masked(0x83, Buffer.from('x'))],
    ['a long ping', masked(0x89, Buffer.alloc(126))],
    ['a ping in parts', masked(0x09, Buffer.from('x'))],
    ['a length beyond every number', Buffer.from([0x82, 0xff, ...Array<number>(8).fill(0xff), ...MASK])],
  ];
  for (const [name, bytes] of cases) {
    await t.test(name, () => {
      assert.equal(decode([bytes]).valid, false);
    });
  }
});

test('random frames are read or refused alike, however they are cut', () => {
  for (let n = 0; n < 2000; n += 1) {
    const noise = createHash('shake256', { outputLength: 400 }).update(String(n)).digest();
    const bytes = Buffer.concat([
      masked(0x80 | (noise[0]! & 0x0f), noise.subarray(0, noise[1]! & 0x7f)),
      masked(noise[2]!, noise.subarray(200)),
      noise,
    ]);
    const pieces = Array.from(bytes, (byte) => Buffer.from([byte]));

    assert.deepEqual(decode(pieces), decode([bytes]), String(n));
  }
});
