import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { BothEngines, docker, normalised, type Side } from '../both-engines.ts';
import { CHOSEN, LINES } from './cli-lines.ts';

type Line = Readonly<{ code: number; stdout: unknown; stderr: string }>;

suite('networks, volumes, events and the engine by docker’s command line, beside dockerd', () => {
  let engines: BothEngines;
  let answers: { ours: Line[]; theirs: Line[] };
  before(async () => {
    engines = await BothEngines.start();
    answers = await engines.both(async (side) => {
      const said: Line[] = [];
      for (const line of LINES) {
        if (line.startsWith('events')) await nextSecond();
        said.push(await run(side, line));
      }
      return said;
    });
  });
  after(async () => await engines[Symbol.asyncDispose]());

  for (const [index, line] of LINES.entries()) {
    const chosen = CHOSEN[line];
    test(chosen === undefined ? line : `${line}: ${chosen}`, () => {
      const [ours, theirs] = [answers.ours[index], answers.theirs[index]];

      if (chosen === undefined) assert.deepEqual(ours, theirs);
      else assert.notDeepEqual(ours, theirs, 'there is no difference any more');
    });
  }
});

/** docker sends `--until 0s` as a whole second, so that the events of the one that has begun are not told. */
async function nextSecond(): Promise<void> {
  await setTimeout(1000 - (Date.now() % 1000));
}

/** Blanks within `{{ }}` part no words. A line may end with ` | grep WORD`, which keeps the lines of stdout that have it. */
async function run(side: Side, line: string): Promise<Line> {
  const [command = '', word] = line.split(' | grep ');
  const { code, stdout, stderr } = await docker(side, command.match(/(?:\{\{[^}]*\}\}|\S)+/g) ?? []);
  const kept =
    word === undefined
      ? stdout
      : stdout
          .split('\n')
          .filter((one) => one.includes(word))
          .join('\n');
  return { code, stdout: readable(neutral(side, kept)), stderr: neutral(side, stderr) };
}

/** JSON as a value, since its keys have no order. */
function readable(text: string): unknown {
  return text.startsWith('[\n') ? (JSON.parse(text.slice(0, text.lastIndexOf(']') + 1)) as unknown) : text;
}

/** Without ids and times. */
function neutral(side: Side, text: string): string {
  return normalised(side, text)
    .replaceAll(/"(Created|CreatedAt)": ?"[^"]+"/g, '"$1":"<time>"')
    .replaceAll(/\/[^ "]*\/volumes\/([\w<> -]+)\/_data/g, '<volumes>/$1');
}
