import { Connection } from '@gantry/client/connection.ts';
import { addressOf, targetOf, type Target } from '@gantry/client/target.ts';

import type { Context } from './command-line/command.ts';
import { checkCount, parse } from './command-line/parse.ts';
import { COMMANDS } from './commands.ts';
import { EXIT, Exit, UsageError } from './exit-codes.ts';
import { messageOf } from './failures.ts';
import { findCommand, GROUPS, NOT_YET, type Found } from './groups.ts';
import { red } from './output/colour.ts';
import { visibleLines } from './output/escape.ts';

const GLOBAL_FLAGS = {
  context: { kind: 'text', short: 'c', help: '' },
  host: { kind: 'text', short: 'H', help: '' },
  version: { kind: 'boolean', short: 'v', help: '' },
} as const;

/** Runs one command line and returns its exit code; errors go to stderr in one form. */
export async function runProgram(argv: readonly string[]): Promise<number> {
  const line: Line = { place: 'gantry' };
  using stack = new DisposableStack();
  try {
    return await obey(argv, line, stack);
  } catch (error) {
    const message = messageOf(error, error instanceof UsageError ? '' : addressOf(line.host, process.env));
    if (message !== '') console.error(`${red('gantry:')} ${visibleLines(message)}`);
    if (error instanceof UsageError) console.error(`See '${line.place} --help'.`);
    return error instanceof Exit ? error.code : EXIT.failed;
  }
}

/** The part of the line that was understood, for error messages. */
type Line = { place: string; host?: string };

async function obey(argv: readonly string[], line: Line, stack: DisposableStack): Promise<number> {
  const global = parse({ flags: GLOBAL_FLAGS, passesOn: true }, argv);
  if (global.help) return await showHelp([]);
  const { context, host, version } = global.flags as unknown as GlobalValues;
  if (context !== undefined) useContext(context, host);
  if (host !== undefined) line.host = host;
  if (version) return (await import('./system/version.ts')).printOwnVersion();
  const { words } = global;
  if (words.length === 0) return await showHelp([]);
  if (words[0] === 'help') return await showHelp(words.slice(1));
  if (words[0] === '__complete') return await complete(words.slice(1), contextOf(host, stack));
  const found = findCommand(words);
  if (found?.kind !== 'command') return await groupOf(found, words, line);
  return await runCommand(found, line, contextOf(host, stack));
}

type GlobalValues = { context: string | undefined; host: string | undefined; version: boolean };

/** The environment passes the choice to the process that removes a container in the background. */
function useContext(context: string, host: string | undefined): void {
  if (host !== undefined) throw new UsageError('--host and --context name two engines: use one of them');
  process.env.DOCKER_CONTEXT = context;
  delete process.env.GANTRY_HOST;
  delete process.env.DOCKER_HOST;
}

async function runCommand(found: Extract<Found, { kind: 'command' }>, line: Line, context: Context): Promise<number> {
  line.place = `gantry ${found.name}`;
  const command = await found.entry.load();
  const parsed = parse(command, found.rest);
  if (parsed.help) {
    const { commandHelp } = await import('./command-line/help.ts');
    console.log(commandHelp(found.name, found.entry, command));
    return 0;
  }
  checkCount(found.name, command.count, parsed.words.length);
  return (await command.run(context, parsed.words, parsed.flags)) ?? 0;
}

/** The help of the named command, or of the program. */
async function showHelp(words: readonly string[]): Promise<number> {
  const { commandHelp, groupHelp, programHelp } = await import('./command-line/help.ts');
  const found = words.length === 0 ? undefined : (findCommand(words) ?? (await unknown(words[0]!)));
  if (found === undefined) console.log(programHelp());
  else if (found.kind === 'group') console.log(groupHelp(found.name));
  else console.log(commandHelp(found.name, found.entry, await found.entry.load()));
  return 0;
}

async function groupOf(found: Found | undefined, words: readonly string[], line: Line): Promise<number> {
  if (found === undefined) return await unknown(words[0]!);
  const [word] = found.rest;
  if (word === undefined || word === '--help' || word === '-h') return await showHelp([found.name]);
  line.place = `gantry ${found.name}`;
  return await unknown(word, found.name);
}

async function unknown(word: string, group?: string): Promise<never> {
  if (Object.hasOwn(NOT_YET, word)) throw new Exit(EXIT.failed, `'${word}' is not built yet. ${NOT_YET[word]}`);
  const { nearest } = await import('./command-line/suggest.ts');
  const known =
    group === undefined
      ? [...Object.keys(COMMANDS), ...Object.keys(GROUPS), ...LAUNCHER]
      : Object.keys(GROUPS[group]!.commands);
  const near = nearest(word, known);
  const meant = near.length === 0 ? '' : `\nDid you mean ${near.map((name) => `'${name}'`).join(' or ')}?`;
  throw new UsageError(`unknown command '${group === undefined ? '' : `${group} `}${word}'${meant}`);
}

/** The commands of ./gantry itself. */
const LAUNCHER = ['demo', 'test', 'check', 'bench', 'daemon', 'gateway', 'help'];

async function complete(words: readonly string[], context: Context): Promise<number> {
  const { completionsOf } = await import('./command-line/completion.ts');
  for (const word of await completionsOf(words, context)) console.log(word);
  return 0;
}

function contextOf(host: string | undefined, stack: DisposableStack): Context {
  let opened: Connection | undefined;
  return {
    get address() {
      return addressOf(host, process.env);
    },
    get connection() {
      opened ??= stack.use(new Connection(readTarget(host)));
      return opened;
    },
  };
}

function readTarget(host: string | undefined): Target {
  try {
    return targetOf(host, process.env);
  } catch (error) {
    throw new UsageError(messageOf(error, ''));
  }
}
