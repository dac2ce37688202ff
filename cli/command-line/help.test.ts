import assert from 'node:assert/strict';
import { test } from 'node:test';

import { COMMANDS } from '../commands.ts';
import { GROUPS } from '../groups.ts';
import { commandHelp, groupHelp, programHelp } from './help.ts';
import { nearest } from './suggest.ts';

for (const [name, entry] of Object.entries(COMMANDS)) {
  test(`gantry ${name} explains itself and each of its flags`, async () => {
    const command = await entry.load();

    const help = commandHelp(name, entry, command);

    assert.ok(help.startsWith(`Usage:  gantry ${name}`), help);
    assert.ok(help.includes(entry.summary));
    const flags = Object.entries(command.flags);
    for (const [flag, { help: text, refused }] of flags) {
      assert.match(help, new RegExp(`--${flag}\\b`));
      assert.notEqual(refused ?? text, '', `--${flag} says nothing`);
    }
    const shorts = flags.flatMap(([, { short }]) => short ?? []);
    assert.equal(new Set(shorts).size, shorts.length, `two flags share a letter: ${shorts.join()}`);
    for (const line of help.split('\n')) assert.ok(line.length <= 120 || line.startsWith('  $ '), line);
  });
}

test('the program’s help has every command and group', () => {
  const help = programHelp();

  for (const name of [...Object.keys(COMMANDS), ...Object.keys(GROUPS)])
    assert.match(help, new RegExp(`^  ${name} {2,}\\w`, 'm'));
});

test('a group’s help has its commands, and each is one that there is', () => {
  for (const [group, { commands }] of Object.entries(GROUPS)) {
    for (const [word, name] of Object.entries(commands)) {
      assert.ok(Object.hasOwn(COMMANDS, name), name);
      assert.match(groupHelp(group), new RegExp(`^  ${word} {2,}\\w`, 'm'));
    }
  }
});

for (const [word, meant] of [
  ['pz', ['ps']],
  ['imgaes', ['images']],
  ['strat', ['start', 'stats']],
  ['reneme', ['rename']],
  ['inspec', ['inspect']],
  ['xyzzy', []],
  ['', []],
] as const) {
  test(`'${word}' may mean ${meant.join(' or ') || 'nothing'}`, () => {
    assert.deepEqual(nearest(word, Object.keys(COMMANDS)), meant);
  });
}
