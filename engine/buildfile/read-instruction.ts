import { EngineError } from '../lib/errors.ts';
import { withSuggestion } from '../lib/notations/suggestion.ts';
import { mountSource } from './buildkit/mount.ts';
import type { Dialect } from './dialect.ts';
import { flag, readFlags } from './flags.ts';
import { quote } from './go-text.ts';
import { healthcheckOf } from './healthcheck.ts';
import type { Arg, CommandWords, Copy, From, Instruction, Pair, Run, Setting } from './instruction.ts';
import { mountOption, NO_MOUNT } from './mount-option.ts';
import { KEYWORDS, parseFile, type Line } from './parse.ts';

const STAGE_NAME = /^[a-z][a-z0-9-_.]*$/;
const NETWORKS: readonly string[] = ['default', 'none', 'host'];

/** Interprets an instruction. Throws `invalid`, also for an unknown one. */
export function readInstruction(line: Line, dialect: Dialect = 'classic'): Instruction {
  const written = { code: line.original.trim(), number: line.number, end: line.end };
  switch (line.keyword) {
    case 'from':
      return { ...written, ...fromOf(line, dialect) };
    case 'run':
      return { ...written, ...runOf(line, dialect) };
    case 'copy':
    case 'add':
      return { ...written, ...copyOf(line, line.keyword, dialect) };
    case 'arg':
      return { ...written, kind: 'arg', args: argsOf(line) };
    default:
      return settingOf(line, written, dialect);
  }
}

function settingOf(line: Line, written: { code: string; number: number; end: number }, dialect: Dialect): Setting {
  const { keyword, args, flags } = line;
  const name = keyword.toUpperCase();
  // Docker looks at flags after it has counted the arguments of these.
  const one = (): string => exactlyOne(name, line, dialect);
  switch (keyword) {
    case 'env':
      return { ...written, kind: 'env', pairs: pairsOf(line, dialect) };
    case 'label':
      return { ...written, kind: 'label', pairs: pairsOf(line, dialect), isLiteral: false };
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
      readFlags(flags, dialect);
      return { ...written, kind: keyword, command: commandOf(line) };
    case 'healthcheck':
      return { ...written, kind: 'healthcheck', healthcheck: healthcheckOf(line, dialect) };
    case 'onbuild':
      return { ...written, kind: 'onbuild', trigger: triggerOf(line, dialect) };
    case 'expose':
      atLeastOne(name, line, dialect);
      return { ...written, kind: 'expose', ports: args.toSorted() };
    case 'volume':
      return { ...written, kind: 'volume', paths: volumesOf(line, dialect) };
    case 'shell':
      return { ...written, kind: 'shell', words: shellOf(line, dialect) };
    default:
      throw new EngineError('invalid', unknownInstruction(line, dialect));
  }
}

function unknownInstruction({ word }: Line, dialect: Dialect): string {
  if (dialect === 'classic') return `unknown instruction: ${word.toUpperCase()}`;
  return withSuggestion(`unknown instruction: ${word}`, word, KEYWORDS, { ignoresCase: true });
}

function exactlyOne(name: string, { args, flags, keyword }: Line, dialect: Dialect): string {
  if (args.length !== 1) throw new EngineError('invalid', `${name} requires exactly one argument`);
  if (keyword !== 'stopsignal') readFlags(flags, dialect);
  return args[0]!;
}

function atLeastOne(name: string, { args, flags }: Line, dialect: Dialect): void {
  if (args.length === 0) throw new EngineError('invalid', `${name} requires at least one argument`);
  readFlags(flags, dialect);
}

function pairsOf(line: Line, dialect: Dialect): Pair[] {
  const name = line.keyword.toUpperCase();
  readFlags(line.flags, dialect);
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

function triggerOf(line: Line, dialect: Dialect): string {
  atLeastOne('ONBUILD', line, dialect);
  const trigger = line.args[0]!.trim().toUpperCase();
  if (trigger === 'ONBUILD') throw new EngineError('invalid', "Chaining ONBUILD via `ONBUILD ONBUILD` isn't allowed");
  if (trigger === 'MAINTAINER' || trigger === 'FROM') {
    throw new EngineError('invalid', `${trigger} isn't allowed as an ONBUILD trigger`);
  }
  const documents = line.heredocs.map(({ written, name }) => `\n${written}${name}`);
  return `${line.original.replace(/^\s*ONBUILD\s*/i, '')}${documents.join('')}`;
}

function volumesOf(line: Line, dialect: Dialect): string[] {
  atLeastOne('VOLUME', line, dialect);
  const paths = line.args.map((path) => path.trim());
  if (paths.includes('')) throw new EngineError('invalid', 'VOLUME specified can not be an empty string');
  return paths;
}

function shellOf(line: Line, dialect: Dialect): readonly string[] {
  atLeastOne('SHELL', line, dialect);
  if (line.isJson) return line.args;
  const shown = dialect === 'classic' ? `. ${line.original}` : '';
  throw new EngineError('invalid', `SHELL requires the arguments to be in JSON form${shown}`);
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

function fromOf({ args, flags }: Line, dialect: Dialect): Omit<From, 'code' | 'number' | 'end'> {
  const isNamed = args.length === 3 && args[1]!.toLowerCase() === 'as';
  if (!isNamed && args.length !== 1) throw new EngineError('invalid', 'FROM requires either one or three arguments');
  const name = isNamed ? args[2]!.toLowerCase() : '';
  if (isNamed && !STAGE_NAME.test(name)) {
    const why = "name can't start with a number or contain symbols";
    throw new EngineError('invalid', `invalid name for build stage: ${quote(args[2]!)}, ${why}`);
  }
  const read = readFlags(flags, dialect, { once: ['platform'] });
  return { kind: 'from', base: args[0]!, name, platform: flag(read, 'platform') };
}

const COPY_FLAGS: Readonly<Record<'copy' | 'add', Readonly<Record<Dialect, Parameters<typeof readFlags>[2]>>>> = {
  copy: {
    classic: { once: ['chown', 'from', 'chmod'] },
    buildkit: { once: ['chown', 'from', 'chmod'], repeated: ['exclude'], booleans: ['link', 'parents'] }, // every copy is a layer, so `--link` changes nothing,
  },
  add: {
    classic: { once: ['chown', 'chmod'] },
    buildkit: {
      once: ['chown', 'chmod', 'checksum'],
      repeated: ['exclude'],
      booleans: ['link', 'keep-git-dir', 'unpack'],
    },
  },
};

function copyOf(line: Line, kind: 'copy' | 'add', dialect: Dialect): Omit<Copy, 'code' | 'number' | 'end'> {
  const { args, heredocs } = line;
  if (args.length < 2) {
    const why = 'requires at least two arguments, but only one was provided. Destination could not be determined';
    throw new EngineError('invalid', `${kind.toUpperCase()} ${why}`);
  }
  const flags = readFlags(line.flags, dialect, COPY_FLAGS[kind][dialect]);
  const documents = new Set(heredocs.map(({ word }) => word));
  const destination = args.at(-1)!;
  if (dialect === 'buildkit' && documents.has(destination)) {
    throw new EngineError('invalid', `${kind.toUpperCase()} cannot accept a heredoc as a destination`);
  }
  const maybe = (name: string): boolean | undefined => (flags.has(name) ? flag(flags, name) === 'true' : undefined);
  return {
    kind,
    sources: args.slice(0, -1).filter((source) => !documents.has(source)),
    destination,
    from: flag(flags, 'from'),
    chown: flag(flags, 'chown'),
    chmod: flag(flags, 'chmod'),
    heredocs,
    keepsParents: maybe('parents') === true,
    excluded: flags.get('exclude') ?? [],
    checksum: flag(flags, 'checksum'),
    keepsGitFolder: maybe('keep-git-dir'),
    unpacks: maybe('unpack'),
  };
}

function runOf(line: Line, dialect: Dialect): Omit<Run, 'code' | 'number' | 'end'> {
  const flags = readFlags(line.flags, dialect, { once: ['network', 'security'], repeated: ['mount'] });
  const network = flag(flags, 'network') || 'default';
  const isClassic = dialect === 'classic';
  if (!NETWORKS.includes(network)) {
    throw new EngineError('invalid', `invalid network mode${isClassic ? `: ${network}` : ` ${quote(network)}`}`);
  }
  refuseSecurity(flag(flags, 'security'), isClassic);
  const texts = flags.get('mount') ?? [];
  return {
    kind: 'run',
    command: commandOf(line),
    mounts: isClassic ? texts.map(mountOption) : texts.map((text) => ({ ...NO_MOUNT, from: mountSource(text) })),
    mountTexts: isClassic ? [] : texts,
    network: network as Run['network'],
    heredocs: line.heredocs,
  };
}

function refuseSecurity(security: string, isClassic: boolean): void {
  if (security === '' || security === 'sandbox') return;
  if (!isClassic && security === 'insecure') {
    throw new EngineError('invalid', 'security.insecure is not allowed: it is all of the host');
  }
  throw new EngineError('invalid', `security ${isClassic ? security : quote(security)} is not valid`);
}

/** A trigger of ONBUILD from an image's configuration. Throws `invalid`. */
export function readTrigger(text: string, dialect: Dialect): Exclude<Instruction, From> {
  const { lines } = parseFile(text.trim(), dialect);
  if (lines.length !== 1) throw new EngineError('invalid', 'onbuild trigger should be a single expression');
  const instruction = readInstruction(lines[0]!, dialect);
  if (instruction.kind === 'from') throw new EngineError('invalid', "FROM isn't allowed as an ONBUILD trigger");
  return instruction;
}
