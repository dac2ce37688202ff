import { COMMANDS, type Entry } from './commands.ts';

const asItself = (names: string): Record<string, string> =>
  Object.fromEntries(names.split(' ').map((name) => [name, name]));

/** Groups, such as `volume`, with their commands. */
export const GROUPS: Readonly<Record<string, { summary: string; commands: Readonly<Record<string, string>> }>> = {
  container: {
    summary: 'The commands for containers',
    commands: {
      ...asItself(
        'attach commit cp create diff exec export kill logs pause port ps rename restart rm run start stats stop top unpause update wait',
      ),
      ls: 'ps',
      list: 'ps',
      remove: 'rm',
      inspect: 'container inspect',
      prune: 'container prune',
    },
  },
  image: {
    summary: 'The commands for images',
    commands: {
      ...asItself('build history import load pull push save tag'),
      ls: 'images',
      list: 'images',
      rm: 'rmi',
      remove: 'rmi',
      inspect: 'image inspect',
      prune: 'image prune',
    },
  },
  volume: {
    summary: 'The commands for volumes',
    commands: {
      create: 'volume create',
      inspect: 'volume inspect',
      ls: 'volume ls',
      list: 'volume ls',
      prune: 'volume prune',
      rm: 'volume rm',
      remove: 'volume rm',
    },
  },
  network: {
    summary: 'The commands for networks',
    commands: {
      connect: 'network connect',
      create: 'network create',
      disconnect: 'network disconnect',
      inspect: 'network inspect',
      ls: 'network ls',
      list: 'network ls',
      prune: 'network prune',
      rm: 'network rm',
      remove: 'network rm',
    },
  },
  plugin: {
    summary: 'The commands for plugins',
    commands: {
      disable: 'plugin disable',
      enable: 'plugin enable',
      inspect: 'plugin inspect',
      install: 'plugin install',
      ls: 'plugin ls',
      list: 'plugin ls',
      rm: 'plugin rm',
      remove: 'plugin rm',
    },
  },
  swarm: {
    summary: 'The commands for the cluster',
    commands: {
      ca: 'swarm ca',
      init: 'swarm init',
      join: 'swarm join',
      'join-token': 'swarm join-token',
      leave: 'swarm leave',
      unlock: 'swarm unlock',
      'unlock-key': 'swarm unlock-key',
      update: 'swarm update',
    },
  },
  node: {
    summary: 'The commands for nodes of the cluster',
    commands: {
      demote: 'node demote',
      inspect: 'node inspect',
      ls: 'node ls',
      list: 'node ls',
      promote: 'node promote',
      ps: 'node ps',
      rm: 'node rm',
      remove: 'node rm',
      update: 'node update',
    },
  },
  service: {
    summary: 'The commands for services',
    commands: {
      create: 'service create',
      inspect: 'service inspect',
      ls: 'service ls',
      list: 'service ls',
      ps: 'service ps',
      logs: 'service logs',
      rm: 'service rm',
      remove: 'service rm',
      rollback: 'service rollback',
      scale: 'service scale',
      update: 'service update',
    },
  },
  secret: {
    summary: 'The commands for secrets of the cluster',
    commands: {
      create: 'secret create',
      inspect: 'secret inspect',
      ls: 'secret ls',
      list: 'secret ls',
      rm: 'secret rm',
      remove: 'secret rm',
    },
  },
  config: {
    summary: 'The commands for configs of the cluster',
    commands: {
      create: 'config create',
      inspect: 'config inspect',
      ls: 'config ls',
      list: 'config ls',
      rm: 'config rm',
      remove: 'config rm',
    },
  },
  task: { summary: 'The commands for tasks', commands: { inspect: 'task inspect', ls: 'task ls', list: 'task ls' } },
  system: {
    summary: 'The commands for the engine itself',
    commands: { df: 'system df', events: 'events', info: 'info', prune: 'system prune' },
  },
  builder: { summary: 'The commands for builds', commands: { build: 'build', prune: 'builder prune' } },
};

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
