import assert from 'node:assert/strict';
import { test } from 'node:test';

import { hasSameSettings, resolvConfOf } from './resolv-conf.ts';

const commented =
  '# a comment\n; another\nnameserver 10.1.1.1 # near\nsearch a.test b.test\noptions ndots:2\n\n# last\n';
const resolved = '# resolved\nnameserver 127.0.0.53\noptions edns0 trust-ad\nsearch .\n';
const mixed = 'nameserver 127.0.0.53\nnameserver 10.1.1.1\nnameserver ::1\nnameserver ::10\nlookup file';
const PUBLIC = 'nameserver 8.8.8.8\nnameserver 8.8.4.4\n';
const own = { servers: ['1.1.1.1'] };
const bridge = { isHost: false, usesResolver: false };
const user = { isHost: false, usesResolver: true };
const host = { isHost: true, usesResolver: false };

type Row = [name: string, parameters: Parameters<typeof resolvConfOf>, expected: string];
const rows: Row[] = [
  ['comments stay', [commented, {}, bridge], commented],
  ['the host network has the file of the host', [resolved, {}, host], resolved],
  ['an empty file of the host stays empty in its network', ['', {}, host], ''],
  [
    'servers on the loopback of the host are left out',
    [mixed, {}, bridge],
    'nameserver 10.1.1.1\nnameserver ::10\nlookup file',
  ],
  [
    'public servers follow where none is left',
    [resolved, {}, bridge],
    `# resolved\noptions edns0 trust-ad\nsearch .\n${PUBLIC}`,
  ],
  ['public servers are in the place of an empty file', ['', {}, bridge], PUBLIC],
  ['public servers follow a line without an end', ['# none', {}, bridge], `# none\n${PUBLIC}`],
  ['a word in a comment is no server', ['# nameserver 10.1.1.1\n', {}, bridge], `# nameserver 10.1.1.1\n${PUBLIC}`],
  ['own servers', [commented, own, bridge], 'search a.test b.test\nnameserver 1.1.1.1\noptions ndots:2\n'],
  [
    'own servers in the host network',
    [commented, own, host],
    'search a.test b.test\nnameserver 1.1.1.1\noptions ndots:2\n',
  ],
  [
    'own search domains',
    [commented, { search: ['x.test'] }, bridge],
    'search x.test\nnameserver 10.1.1.1\noptions ndots:2\n',
  ],
  ['a dot for no search domains', [commented, { search: ['.'] }, bridge], 'nameserver 10.1.1.1\noptions ndots:2\n'],
  [
    'own options',
    [commented, { options: ['rotate'] }, bridge],
    'search a.test b.test\nnameserver 10.1.1.1\noptions rotate\n',
  ],
  [
    'own options with the loopback of the host',
    [mixed, { options: ['rotate'] }, host],
    `${mixed.split('\n').slice(0, 4).join('\n')}\noptions rotate\n`,
  ],
  ['own options without a server', [resolved, { options: ['rotate'] }, bridge], `${PUBLIC}options rotate\n`],
  [
    'the resolver, with the options of the host',
    [commented, {}, user],
    'search a.test b.test\nnameserver 127.0.0.11\noptions ndots:2\n',
  ],
  [
    'the resolver, with ndots beside other options',
    [resolved, own, user],
    'nameserver 127.0.0.11\noptions edns0 trust-ad ndots:0\n',
  ],
  ['the resolver alone', ['', {}, user], 'nameserver 127.0.0.11\noptions ndots:0\n'],
  ['the last of domain and search', ['search a\ndomain b\n', own, bridge], 'search b\nnameserver 1.1.1.1\n'],
  [
    'line ends with a carriage return',
    ['search a\r\nnameserver 10.1.1.1\r\n', { options: ['x'] }, bridge],
    'search a\nnameserver 10.1.1.1\noptions x\n',
  ],
];
for (const [name, parameters, expected] of rows) {
  test(`resolv.conf: ${name}`, () => {
    assert.equal(resolvConfOf(...parameters), expected);
  });
}

test('comments, empty lines and the order make no other settings', () => {
  assert.ok(hasSameSettings(commented, 'options ndots:2\nnameserver 10.1.1.1\nsearch a.test b.test\n'));
  assert.ok(!hasSameSettings(commented, 'options ndots:2\nnameserver 10.1.1.2\nsearch a.test b.test\n'));
  assert.ok(!hasSameSettings(commented, `${commented}nameserver 10.1.1.2\n`));
});
