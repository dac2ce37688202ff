import { EngineError } from '../lib/errors.ts';
import { flag, readFlags } from './flags.ts';
import { quote } from './go-text.ts';
import { healthcheckOf } from './healthcheck.ts';
import type { Arg, CommandWords, Copy, From, Instruction, Pair, Run, Setting } from './instruction.ts';
import { mountOption } from './mount-option.ts';
import { parseLine, type Line } from './parse.ts';

const STAGE_NAME = /^[a-z][a-z0-9-_.]*$/;
const NETWORKS: readonly string[] = ['default', 'none', 'host'];

/** Interprets an instruction. Throws `invalid`, also for an unknown one. */
export function readInstruction(line: Line): Instruction {
  const written = { code: line.original.trim(), number: line.number, end: line.end };
  switch (line.keyword) {
    case 'from':
      return { ...written, ...fromOf(line) };
    case 'run':
      return { ...written, ...runOf(line) };
    case 'copy':
    case 'add':
      return { ...written, ...copyOf(line, line.keyword) };
    case 'arg':
      return { ...written, kind: 'arg', args: argsOf(line) };
    default:
      return settingOf(line, written);
  }
}

function settingOf(line: Line, written: { code: string; number: number; end: number }): Setting {
  const { keyword, args, flags } = line;
  const name = keyword.toUpperCase();
  // Docker looks at flags after it has counted the arguments of these.
  const one = (): string => exactlyOne(name, line);
  switch (keyword) {
    case 'env':
      return { ...written, kind: 'env', pairs: pairsOf(line) };
    case 'label':
      return { ...written, kind: 'label', pairs: pairsOf(line), isLiteral: false };
    case 'maintainer':
      return { ...written, kind: 'maintainer', maintainer: one() };
    case 'user':
      return { ...written, kind: 'user', user: one() };
    case 'workdir':
      return { ...written, kind: 'workdir', path: one() };
    case 'stopsignal':
      return { ...written, kind: 'stopsignal', signal: one() };
    case 'cmd':
    case 'entrypoint':
      readFlags(flags);
      return { ...written, kind: keyword, command: commandOf(line) };
    case 'healthcheck':
      return { ...written, kind: 'healthcheck', healthcheck: healthcheckOf(line) };
    case 'onbuild':
      return { ...written, kind: 'onbuild', trigger: triggerOf(line) };
    case 'expose':
      atLeastOne(name, line);
      return { ...written, kind: 'expose', ports: args.toSorted() };
    case 'volume':
      return { ...written, kind: 'volume', paths: volumesOf(line) };
    case 'shell':
      return { ...written, kind: 'shell', words: shellOf(line) };
    default:
      throw new EngineError('invalid', `unknown instruction: ${name}`);
  }
}

function exactlyOne(name: string, { args, flags, keyword }: Line): string {
  if (args.length !== 1) throw new EngineError('invalid', `${name} requires exactly one argument`);
  if (keyword !== 'stopsignal') readFlags(flags);
  return args[0]!;
}

function atLeastOne(name: string, { args, flags }: Line): void {
  if (args.length === 0) throw new EngineError('invalid', `${name} requires at least one argument`);
  readFlags(flags);
}

function pairsOf(line: Line): Pair[] {
  const name = line.keyword.toUpperCase();
  readFlags(line.flags);
  if (line.args.length === 0) throw new EngineError('invalid', `${name} requires at least one argument`);
  const pairs: Pair[] = [];
  for (let at = 0; at < line.args.length; at += 2) pairs.push({ name: line.args[at]!, value: line.args[at + 1]! });
  if (pairs.some((pair) => pair.name === '')) throw new EngineError('invalid', `${name} names can not be blank`);
  return pairs;
}

/** A command for the shell is one word. */
export function commandOf({ args, isJson }: Pick<Line, 'args' | 'isJson'>): CommandWords {
  if (isJson || args.length === 0) return { words: args, isForShell: !isJson };
  return { words: [args.join(' ')], isForShell: true };
}

function triggerOf(line: Line): string {
  atLeastOne('ONBUILD', line);
  const trigger = line.args[0]!.trim().toUpperCase();
  if (trigger === 'ONBUILD') throw new EngineError('invalid', "Chaining ONBUILD via `ONBUILD ONBUILD` isn't allowed");
  if (trigger === 'MAINTAINER' || trigger === 'FROM') {
    throw new EngineError('invalid', `${trigger} isn't allowed as an ONBUILD trigger`);
  }
  return line.original.replace(/^\s*ONBUILD\s*/i, '');
}

function volumesOf(line: Line): string[] {
  atLeastOne('VOLUME', line);
  const paths = line.args.map((path) => path.trim());
  if (paths.includes('')) throw new EngineError('invalid', 'VOLUME specified can not be an empty string');
  return paths;
}

function shellOf(line: Line): readonly string[] {
  atLeastOne('SHELL', line);
  if (line.isJson) return line.args;
  throw new EngineError('invalid', `SHELL requires the arguments to be in JSON form. ${line.original}`);
}

function argsOf({ args }: Line): Arg['args'] {
  if (args.length === 0) throw new EngineError('invalid', 'ARG requires at least one argument');
  return args.map((word) => {
    const equals = word.indexOf('=');
    if (equals === 0) throw new EngineError('invalid', 'ARG names can not be blank');
    return equals < 0
      ? { name: word, value: undefined }
      : { name: word.slice(0, equals), value: word.slice(equals + 1) };
  });
}

function fromOf({ args, flags }: Line): Omit<From, 'code' | 'number' | 'end'> {
  const isNamed = args.length === 3 && args[1]!.toLowerCase() === 'as';
  if (!isNamed && args.length !== 1) throw new EngineError('invalid', 'FROM requires either one or three arguments');
  const name = isNamed ? args[2]!.toLowerCase() : '';
  if (isNamed && !STAGE_NAME.test(name)) {
    const why = "name can't start with a number or contain symbols";
    throw new EngineError('invalid', `invalid name for build stage: ${quote(args[2]!)}, ${why}`);
  }
  const read = readFlags(flags, ['platform']);
  return { kind: 'from', base: args[0]!, name, platform: flag(read, 'platform') };
}

function copyOf(line: Line, kind: 'copy' | 'add'): Omit<Copy, 'code' | 'number' | 'end'> {
  const { args, heredocs } = line;
  if (args.length < 2) {
    const why = 'requires at least two arguments, but only one was provided. Destination could not be determined';
    throw new EngineError('invalid', `${kind.toUpperCase()} ${why}`);
  }
  const flags = readFlags(line.flags, kind === 'copy' ? ['chown', 'from', 'chmod'] : ['chown', 'chmod']);
  const chmod = flag(flags, 'chmod');
  const documents = new Set(heredocs.map(({ word }) => word));
  return {
    kind,
    sources: args.slice(0, -1).filter((source) => !documents.has(source)),
    destination: args.at(-1)!,
    from: flag(flags, 'from'),
    chown: flag(flags, 'chown'),
    chmod,
    heredocs,
  };
}

function runOf(line: Line): Omit<Run, 'code' | 'number' | 'end'> {
  const flags = readFlags(line.flags, ['network', 'security'], ['mount']);
  const network = flag(flags, 'network') || 'default';
  if (!NETWORKS.includes(network)) throw new EngineError('invalid', `invalid network mode: ${network}`);
  const security = flag(flags, 'security');
  if (security !== '' && security !== 'sandbox') throw new EngineError('invalid', `security ${security} is not valid`);
  return {
    kind: 'run',
    command: commandOf(line),
    mounts: (flags.get('mount') ?? []).map(mountOption),
    network: network as Run['network'],
    heredocs: line.heredocs,
  };
}

/** A trigger of ONBUILD from an image's configuration. Throws `invalid`. */
export function readTrigger(text: string): Exclude<Instruction, From> {
  const instruction = readInstruction(parseLine(text.trim(), '\\', 1));
  if (instruction.kind === 'from') throw new EngineError('invalid', "FROM isn't allowed as an ONBUILD trigger");
  return instruction;
}
