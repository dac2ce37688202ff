import { parseArgs } from 'node:util';

import { defaultSocketPath } from './admin-socket.ts';
import type { FlagValues } from './read.ts';
import type { Override } from './settings/identities.ts';

/** A command of the command line. */
export type Command =
  | Readonly<{ kind: 'run'; file: string | undefined; flags: FlagValues }>
  | Readonly<{ kind: 'check'; file: string }>
  | Readonly<{ kind: 'explain'; caller: string | undefined; json: boolean; socket: SocketChoice }>
  | Readonly<{ kind: 'content'; caller: string; count: number; socket: SocketChoice }>
  | Readonly<{ kind: 'limits'; caller: string; json: boolean; socket: SocketChoice }>
  | Readonly<{ kind: 'forgive'; caller: string; socket: SocketChoice }>
  | Readonly<{ kind: 'override'; caller: string; wanted: Override; socket: SocketChoice }>
  | Readonly<{ kind: 'version' }>
  | Readonly<{ kind: 'help' }>;

/** How the admin socket of a running gateway is named. */
export type SocketChoice = Readonly<{ path: string | undefined; file: string | undefined }>;

/** The command line cannot be understood. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

export function usage(): string {
  return `Usage: gantry gateway [--config FILE] [--upstream URL] [--listen ADDRESS]… [--workers N]
       gantry gateway --check-config FILE
       gantry gateway explain [CALLER] [--json] [--socket PATH | --config FILE]
       gantry gateway limits CALLER [--json] [--socket PATH | --config FILE]
       gantry gateway forgive CALLER [--socket PATH | --config FILE]
       gantry gateway override CALLER [--limit N] [--secondary N|off] [--socket PATH | --config FILE]
       gantry gateway content CALLER [COUNT] [--socket PATH | --config FILE]
       gantry gateway --version

A reverse proxy that puts the rate limits of a code-hosting API in front of a server.

  --config FILE        settings in YAML or JSON; docs/gateway-settings.md lists every key
  --upstream URL       http://host:port of the server behind; all that is needed without a file
  --listen ADDRESS     address:port, or unix:/path; may be repeated (default: 127.0.0.1:8080)
  --workers N          processes that share the port (default: 1)
  --check-config FILE  says everything that is wrong with a file, each with its place, and exits

  explain              who is limited now, by what, until when
  explain CALLER       all counts of a caller: user:42, ip:192.0.2.1, installation:7, app:3, workflow:9
  limits CALLER        what the caller may, and what is left of it
  forgive CALLER       forgets what the caller has spent, and its ban, in all gateways that share the counts
  override CALLER      gives the caller another limit until the next start, or so many times the secondary limits; in all
                       gateways on one Redis until it is taken away. Without options: as the file says
  content CALLER       counts COUNT (default: 1) creations of content by a user of the web interface
  --socket PATH        the admin socket (default: ${defaultSocketPath()})

Signals: SIGHUP reads the file again, SIGTERM ends when the requests under way are answered.`;
}

/** A key of the file must not be set by a flag as well. */
const KEYS = { upstream: 'upstream', listen: 'listen', workers: 'workers' } as const;

export function parseCommand(argv: readonly string[]): Command {
  const { values, positionals } = parseArguments(argv);
  if (values.help === true) return { kind: 'help' };
  if (values.version === true) return { kind: 'version' };
  const [verb, ...rest] = positionals;
  if (verb === undefined) {
    only(values, ['config', 'check-config', ...Object.keys(KEYS)], 'without a command');
    const { 'check-config': checked, config: file } = values;
    if (checked === undefined) return { kind: 'run', file, flags: flagValues(values) };
    if (Object.keys(values).length > 1) throw new UsageError('--check-config takes no other flags');
    return { kind: 'check', file: checked };
  }
  if (values.socket !== undefined && values.config !== undefined) {
    throw new UsageError('--socket and --config exclude each other');
  }
  const socket = { path: values.socket, file: values.config };
  if (verb === 'explain' && rest.length <= 1) {
    only(values, ['json', 'socket', 'config'], 'with explain');
    return { kind: 'explain', caller: rest[0], json: values.json ?? false, socket };
  }
  const [caller, written = '1'] = rest;
  if (verb === 'limits' && caller !== undefined && rest.length === 1) {
    only(values, ['json', 'socket', 'config'], 'with limits');
    return { kind: 'limits', caller, json: values.json ?? false, socket };
  }
  if (verb === 'forgive' && caller !== undefined && rest.length === 1) {
    only(values, ['socket', 'config'], 'with forgive');
    return { kind: 'forgive', caller, socket };
  }
  if (verb === 'override' && caller !== undefined && rest.length === 1) {
    only(values, ['limit', 'secondary', 'socket', 'config'], 'with override');
    return { kind: 'override', caller, wanted: overrideIn(values), socket };
  }
  if (verb === 'content' && caller !== undefined && rest.length <= 2) {
    only(values, ['socket', 'config'], 'with content');
    if (!/^[1-9]\d{0,5}$/.test(written)) throw new UsageError(`COUNT must be from 1 to 999999, not ${written}`);
    return { kind: 'content', caller, count: Number(written), socket };
  }
  throw new UsageError(`unknown arguments: ${positionals.join(' ')}; see --help`);
}

function parseArguments(argv: readonly string[]) {
  try {
    return parseArgs({
      args: [...argv],
      allowPositionals: true,
      options: {
        help: { type: 'boolean' },
        config: { type: 'string' },
        'check-config': { type: 'string' },
        upstream: { type: 'string' },
        listen: { type: 'string', multiple: true },
        workers: { type: 'string' },
        socket: { type: 'string' },
        json: { type: 'boolean' },
        limit: { type: 'string' },
        secondary: { type: 'string' },
        version: { type: 'boolean', short: 'v' },
      },
    });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

function overrideIn({ limit, secondary }: { limit?: string; secondary?: string }): Override {
  return {
    ...(limit === undefined ? {} : { limit: numberIn('--limit', limit) }),
    ...(secondary === undefined
      ? {}
      : { secondary: secondary === 'off' ? secondary : numberIn('--secondary', secondary) }),
  };
}

function numberIn(flag: string, text: string): number {
  if (!/^\d{1,10}$/.test(text)) throw new UsageError(`${flag} must be a number, not ${text}`);
  return Number(text);
}

function only(values: object, allowed: readonly string[], where: string): void {
  const other = Object.keys(values).find((name) => !allowed.includes(name));
  if (other !== undefined) throw new UsageError(`--${other} is not possible ${where}`);
}

function flagValues(values: { upstream?: string; listen?: string[]; workers?: string }): FlagValues {
  const flags = new Map<string, { flag: string; value: unknown }>();
  for (const name of Object.keys(KEYS) as (keyof typeof KEYS)[]) {
    const value = values[name];
    if (value === undefined) continue;
    const number = name === 'workers' && typeof value === 'string' && /^\d+$/.test(value);
    flags.set(KEYS[name], { flag: `--${name}`, value: number ? Number(value) : value });
  }
  return flags;
}
