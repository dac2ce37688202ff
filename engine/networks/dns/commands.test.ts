import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { boxCommand, forgetNamesCommand, isName, namesCommand, networkCommand } from './commands.ts';

const HOSTILE = [
  'evil\nquit',
  'evil\r\nquit',
  'a b',
  'a,b',
  'a=b',
  '50%',
  '%0Aquit',
  'nul\0',
  'tab\t',
  'c1\u0085',
  '-',
  '',
];

suite('commands of the resolver', () => {
  for (const field of HOSTILE) {
    test(`${JSON.stringify(field)} stays one field of one line`, () => {
      const names = namesCommand(field, field, { ip: field, ip6: field, names: ['web'] });
      const box = boxCommand({
        ...{ containerId: field, pid: 7, netns: field },
        networks: [{ id: field, label: '', ip: '', ip6: '', names: [] }],
        links: [{ alias: `x${field}`, target: 'web' }],
        upstreams: [{ ip: field, inside: false }],
      });

      for (const { line } of [names, box, networkCommand(field, field), forgetNamesCommand(field, field)]) {
        assert.match(line, /^[\x21-\x7e]+(?: [\x21-\x7e]+)*$/);
      }
      const words = names.line.split(' ');
      assert.deepEqual(words.slice(1, 5).map(decoded), [field, field, field, field]);
      const [, id, , netns, , networks, upstreams] = box.line.split(' ');
      assert.deepEqual([id, netns, networks].map(decoded), [field, field, field]);
      assert.equal(upstreams!.split(',').length, 1);
      assert.equal(box.line.split(' ').length, 9);
    });
  }

  const rows: [text: string, expected: boolean][] = [
    ['web', true],
    ['tasks.web', true],
    ['a_b-c', true],
    ['straße', true],
    ['a,b=c%', true],
    ['a'.repeat(63), true],
    ['a'.repeat(64), false],
    ['ß'.repeat(32), false],
    [`${'a.'.repeat(126)}a`, true],
    [`${'a.'.repeat(127)}a`, false],
    ['', false],
    ['.', false],
    ['web.', false],
    ['.web', false],
    ['a..b', false],
    ['a b', false],
    ['a\nquit', false],
    ['a\0', false],
    ['a\x7f', false],
    ['a'.repeat(100_000), false],
  ];
  for (const [text, expected] of rows) {
    test(`${JSON.stringify(text.slice(0, 40))} of ${text.length} letters is ${expected ? 'a' : 'no'} name`, () => {
      assert.equal(isName(text), expected);
      const { line } = namesCommand('n', 'c', { ip: '10.1.0.2', ip6: '', names: ['web', text] });
      assert.equal(line.split(' ').length, expected ? 7 : 6);
    });
  }

  test('a container with thousands of names and links has lines that the resolver takes', () => {
    const label = '%'.repeat(61);
    const names = Array.from({ length: 5000 }, () => [label, label, label, label].join('.'));
    const links = names.map((alias) => ({ alias, target: alias }));
    const served = { containerId: 'c', pid: 7, netns: '/proc/7/ns/net', networks: [], links, upstreams: [] };

    assert.ok(namesCommand('n', 'c', { ip: '', ip6: '', names }).line.length < 1024 * 1024);
    assert.ok(boxCommand(served).line.length < 1024 * 1024);
  });
});

/** The field as the resolver decodes it. */
function decoded(word: string | undefined): string {
  return word === '-' ? '' : decodeURIComponent(word!);
}
