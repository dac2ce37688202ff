import assert from 'node:assert/strict';
import { test } from 'node:test';

import { readMountWords } from '../../host/mounts/mount-by-words.ts';
import { checkOptions, mountRequest, withAddress } from './options.ts';

const refused: [options: Record<string, string>, message: string][] = [
  [{ colour: 'red' }, 'invalid option: "colour"'],
  [{ type: 'tmpfs' }, 'missing required option: "device"'],
  [{ device: 'tmpfs' }, 'missing required option: "type"'],
  [{ o: 'bind' }, 'missing required option: "device"'],
  [{ o: 'bind', device: '/x' }, 'missing required option: "type"'],
  [{ size: 'x' }, "invalid size: 'x'"],
  [{ size: '-1' }, "invalid size: '-1'"],
  [
    { size: '1.5GiB', type: 'tmpfs', device: 'x' },
    'a size is of a folder: that of a mount is one of its options, as in o=size=10m',
  ],
];
for (const [options, message] of refused) {
  test(`${JSON.stringify(options)} is refused`, () => {
    assert.throws(() => checkOptions(options), { kind: 'invalid', message });
  });
}

const taken: Record<string, string>[] = [
  {},
  { size: '0' },
  { size: '1.5GiB' },
  { type: '', device: '' },
  { type: 'none', device: '/x', o: 'bind' },
];
for (const options of taken) {
  test(`${JSON.stringify(options)} is taken`, () => checkOptions(options));
}

test('without type and device a volume is a folder', () => {
  assert.equal(mountRequest({ type: '', device: '', size: '0' }), undefined);
  assert.deepEqual(mountRequest({ type: 'tmpfs', device: 'x' }), { type: 'tmpfs', device: 'x', options: '' });
});

const words: [text: string, flags: number, data: string][] = [
  ['', 0, ''],
  ['ro,size=1m,noexec,uid=5', 0x9, 'size=1m,uid=5'],
  ['ro,rw', 0, ''],
  ['rbind,rslave', 0x1000 | 0x4000 | (1 << 19), ''],
  ['noatime,atime,strictatime', 1 << 24, ''],
  ['toString', 0, 'toString'],
];
for (const [text, flags, data] of words) {
  test(`"${text}" is read as the kernel wants it`, () => {
    assert.deepEqual(readMountWords(text), { flags, data });
  });
}

test('a server of a network file system becomes its address, and no other word changes', async () => {
  const nfs = (options: string) => ({ type: 'nfs', device: ':/x', options });

  assert.match((await withAddress(nfs('ro,addr=localhost,soft'))).options, /^ro,addr=127\.0\.0\.1,soft$/);
  assert.deepEqual(await withAddress(nfs('addr=10.0.0.1')), nfs('addr=10.0.0.1'));
  assert.deepEqual(await withAddress(nfs('clientaddr=localhost')), nfs('clientaddr=localhost'));
  await assert.rejects(withAddress(nfs('addr=nowhere.invalid')), /lookup nowhere\.invalid: no such host/);
});
