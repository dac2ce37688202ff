import { COMMANDS, type Entry } from '../commands.ts';
import { GROUPS } from '../groups.ts';
import { bold } from '../output/colour.ts';
import type { Command, Flag } from './command.ts';

const WIDTH = 100;
const NAMES = 18;

/** The help of the whole program. */
export function programHelp(): string {
  const sections = Map.groupBy(Object.entries(COMMANDS), ([, { section }]) => section);
  const groups = Object.entries(GROUPS).map(([name, { summary }]): [string, string] => [name, summary]);
  return [
    'Usage:  gantry [-H ADDRESS] COMMAND [OPTIONS] [WORDS]',
    ...[...sections].map(([section, entries]) =>
      titled(
        section,
        pairs(
          entries.map(([name, { summary }]) => [name, summary]),
          NAMES,
        ),
      ),
    ),
    titled('Groups', pairs(groups, NAMES)),
    titled(
      'Options',
      pairs([
        ['-c, --context NAME', 'A context of docker (default: $DOCKER_CONTEXT)'],
        ['-H, --host ADDRESS', 'The engine: unix:///path or tcp://host:port (default: $GANTRY_HOST, $DOCKER_HOST)'],
        ['-v, --version', 'Show the version of this program'],
        ['    --help', 'Show this'],
      ]),
    ),
    "'gantry COMMAND --help' explains a command.",
  ].join('\n\n');
}

export function groupHelp(name: string): string {
  const { summary, commands } = GROUPS[name]!;
  const rows = Object.entries(commands).map(([word, command]): [string, string] => [word, COMMANDS[command]!.summary]);
  return [
    `Usage:  gantry ${name} COMMAND`,
    summary,
    titled('Commands', pairs(rows)),
    `'gantry ${name} COMMAND --help' explains a command.`,
  ].join('\n\n');
}

export function commandHelp(name: string, entry: Pick<Entry, 'summary'>, command: Command): string {
  const usable = Object.entries(command.flags).filter(([, { refused }]) => refused === undefined);
  const refused = Object.entries(command.flags).filter(([, flag]) => flag.refused !== undefined);
  const rows = usable.map(([flag, definition]): [string, string] => [
    flagTitle(flag, definition),
    flagText(definition),
  ]);
  const options = pairs([...rows.toSorted(byLongName), ['    --help', 'Show this']]);
  const others = aliasesOf(name);
  return [
    `Usage:  ${usageOf(name, command)}`,
    entry.summary,
    ...(command.about === undefined ? [] : [wrapText(command.about, WIDTH).join('\n')]),
    ...(others.length > 0 ? [titled('The same', `  gantry ${others.join(', gantry ')}`)] : []),
    titled('Options', options),
    ...(refused.length > 0
      ? [titled('Refused', pairs(refused.map(([flag, { refused: why }]) => [`    --${flag}`, why!])))]
      : []),
    ...((command.examples ?? []).length > 0
      ? [titled('Examples', command.examples!.map((line) => `  $ ${line}`).join('\n'))]
      : []),
  ].join('\n\n');
}

function byLongName([a]: [string, string], [b]: [string, string]): number {
  return a.slice(4) < b.slice(4) ? -1 : 1;
}

function usageOf(name: string, { words }: Pick<Command, 'words'>): string {
  return ['gantry', name, '[OPTIONS]', words].join(' ').trimEnd();
}

function aliasesOf(name: string): string[] {
  return Object.entries(GROUPS)
    .flatMap(([group, { commands }]) =>
      Object.entries(commands).map(([word, command]) => ({ path: `${group} ${word}`, command })),
    )
    .filter(({ path, command }) => command === name && path !== name)
    .map(({ path }) => path);
}

function titled(title: string, text: string): string {
  return `${bold(`${title}:`)}\n${text}`;
}

const VALUE = {
  text: 'TEXT',
  list: 'TEXT',
  integer: 'NUMBER',
  decimal: 'NUMBER',
  bytes: 'SIZE',
  duration: 'DURATION',
} as const;

function flagTitle(name: string, flag: Flag): string {
  const value = flag.kind === 'boolean' ? '' : ` ${flag.value ?? VALUE[flag.kind]}`;
  return `${flag.short === undefined ? '   ' : `-${flag.short},`} --${name}${value}`;
}

function flagText({ help, kind, initial }: Flag): string {
  const more = [
    ...(kind === 'list' ? ['may be repeated'] : []),
    ...(initial === undefined ? [] : [`default ${initial}`]),
  ];
  return more.length === 0 ? help : `${help} (${more.join(', ')})`;
}

/** Two columns; the second is wrapped. */
function pairs(rows: readonly (readonly [string, string])[], least = 0): string {
  const width = Math.min(32, Math.max(least, ...rows.map(([first]) => first.length)));
  return rows
    .map(([first, second]) => {
      const [line = '', ...more] = wrapText(second, WIDTH - width - 5);
      const head =
        first.length > width ? `  ${first}\n${' '.repeat(width + 5)}${line}` : `  ${first.padEnd(width)}   ${line}`;
      return [head, ...more.map((each) => ' '.repeat(width + 5) + each)].join('\n');
    })
    .join('\n');
}

function wrapText(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
