import { COMMANDS, type Entry } from './commands.ts';

type Group = Readonly<{ summary: string; commands: Readonly<Record<string, string>> }>;

const SHORT: Readonly<Record<string, string>> = { ls: 'list', rm: 'remove' };

/** Groups, such as `volume`, with their commands: those of their name, and others. */
export const GROUPS: Readonly<Record<string, Group>> = {
  container: group('container', 'The commands for containers', {
    ...asItself(
      'attach commit cp create diff exec export kill logs pause port ps rename restart rm run start stats stop top',
    ),
    ...asItself('unpause update wait'),
    ls: 'ps',
  }),
  image: group('image', 'The commands for images', {
    ...asItself('build history import load pull push save tag'),
    ls: 'images',
    rm: 'rmi',
  }),
  volume: group('volume', 'The commands for volumes'),
  network: group('network', 'The commands for networks'),
  plugin: group('plugin', 'The commands for plugins'),
  swarm: group('swarm', 'The commands for the cluster'),
  node: group('node', 'The commands for nodes of the cluster'),
  service: group('service', 'The commands for services'),
  secret: group('secret', 'The commands for secrets of the cluster'),
  config: group('config', 'The commands for configs of the cluster'),
  task: group('task', 'The commands for tasks'),
  system: group('system', 'The commands for the engine itself', asItself('events info')),
  builder: group('builder', 'The commands for builds', asItself('build')),
};

function asItself(names: string): Record<string, string> {
  return Object.fromEntries(names.split(' ').map((name) => [name, name]));
}

function group(name: string, summary: string, others: Readonly<Record<string, string>> = {}): Group {
  const own = Object.keys(COMMANDS).filter((command) => command.startsWith(`${name} `));
  const commands = {
    ...others,
    ...Object.fromEntries(own.map((command) => [command.slice(name.length + 1), command])),
  };
  const rows = Object.entries(commands).toSorted(([one], [other]) => (one < other ? -1 : 1));
  const withLong = rows.flatMap(([word, command]) => [
    [word, command] as const,
    ...(Object.hasOwn(SHORT, word) ? [[SHORT[word]!, command] as const] : []),
  ]);
  return { summary, commands: Object.fromEntries(withLong) };
}

/** Commands of docker that this command line does not have yet, each with an alternative. */
export const NOT_YET: Readonly<Record<string, string>> = {
  stack: 'Use services, such as: gantry service create --name web nginx',
};

export type Found =
  | { kind: 'command'; name: string; entry: Entry; rest: string[] }
  | { kind: 'group'; name: string; rest: string[] };

/** The command or group at the beginning of a line; undefined for an unknown one. */
export function findCommand(words: readonly string[]): Found | undefined {
  const [first = '', second, ...others] = words;
  if (Object.hasOwn(GROUPS, first)) {
    const { commands } = GROUPS[first]!;
    if (second === undefined || !Object.hasOwn(commands, second))
      return { kind: 'group', name: first, rest: words.slice(1) };
    const name = commands[second]!;
    return { kind: 'command', name, entry: COMMANDS[name]!, rest: others };
  }
  if (!Object.hasOwn(COMMANDS, first)) return undefined;
  return { kind: 'command', name: first, entry: COMMANDS[first]!, rest: words.slice(1) };
}
