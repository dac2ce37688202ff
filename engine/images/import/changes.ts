import { EngineError } from '../../lib/errors.ts';
import type { ImageConfig } from '../image-config.ts';
import { expandWord, splitWords } from './instruction-words.ts';

type Draft = { -readonly [Key in keyof ImageConfig]: ImageConfig[Key] };

type Instruction = { keyword: string; text: string; line: string };

const DEFAULT_SHELL = ['/bin/sh', '-c'];

const EMPTY: ImageConfig = {
  User: '',
  ExposedPorts: {},
  Env: [],
  Cmd: [],
  Entrypoint: [],
  Volumes: {},
  WorkingDir: '',
  OnBuild: [],
  Labels: {},
  StopSignal: '',
  Shell: [],
};

const instructions: Readonly<Record<string, (draft: Draft, instruction: Instruction) => void>> = {
  cmd(draft, { text }) {
    draft.Cmd = commandOf(draft, text);
  },
  entrypoint(draft, { text }) {
    draft.Entrypoint = commandOf(draft, text);
  },
  env(draft, instruction) {
    for (const [name, value] of pairsOf(draft, instruction)) {
      draft.Env = [...draft.Env.filter((entry) => !entry.startsWith(`${name}=`)), `${name}=${value}`];
    }
  },
  expose(draft, { text, line }) {
    const ports = wordsOf(draft, text).flatMap((word) => portsOf(word, line));
    draft.ExposedPorts = { ...draft.ExposedPorts, ...setOf(ports) };
  },
  label(draft, instruction) {
    draft.Labels = { ...draft.Labels, ...Object.fromEntries(pairsOf(draft, instruction)) };
  },
  user(draft, { text, line }) {
    draft.User = oneWord(draft, text, line);
  },
  volume(draft, { text, line }) {
    const paths = jsonWords(text) ?? wordsOf(draft, text);
    if (paths.some((path) => path.trim() === '')) throw invalid(`VOLUME specified can not be an empty string: ${line}`);
    draft.Volumes = { ...draft.Volumes, ...setOf(paths) };
  },
  workdir(draft, { text, line }) {
    const path = oneWord(draft, text, line);
    draft.WorkingDir = path.startsWith('/') ? path : `${draft.WorkingDir.replace(/\/$/, '')}/${path}`;
  },
  stopsignal(draft, { text, line }) {
    draft.StopSignal = oneWord(draft, text, line);
  },
  onbuild(draft, { text, line }) {
    const trigger = text.split(/\s/, 1)[0]!.toUpperCase();
    if (['ONBUILD', 'FROM', 'MAINTAINER'].includes(trigger)) {
      throw invalid(`${trigger} isn't allowed as an ONBUILD trigger: ${line}`);
    }
    draft.OnBuild = [...draft.OnBuild, text];
  },
  healthcheck(draft, { text, line }) {
    draft.Healthcheck = healthcheckOf(draft, text, line);
  },
};

/** Applies instructions such as `CMD ["sh"]` or `ENV A=b` to an image's settings; each string may hold several lines. */
export function applyChanges(changes: readonly string[], base: ImageConfig = EMPTY): ImageConfig {
  const draft: Draft = { ...base };
  for (const instruction of changes.flatMap(instructionsIn)) {
    // `hasOwn`, because `constructor` is not an instruction
    const apply = Object.hasOwn(instructions, instruction.keyword) ? instructions[instruction.keyword] : undefined;
    if (apply === undefined) throw invalid(`${instruction.keyword} is not a valid change command`);
    if (instruction.text === '') throw invalid(`${instruction.keyword.toUpperCase()} requires arguments`);
    apply(draft, instruction);
  }
  return draft;
}

function instructionsIn(text: string): Instruction[] {
  // A backslash at its end continues a line.
  const lines = text.replaceAll(/\\[ \t]*\r?\n/g, '').split(/\r?\n/);
  return lines
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, keyword = '', rest = ''] = /^(\S+)\s*([\s\S]*)$/.exec(line) ?? [];
      return { keyword: keyword.toLowerCase(), text: rest, line };
    });
}

/** `["a", "b"]` is taken as it is; anything else runs in a shell. */
function commandOf(draft: Draft, text: string): readonly string[] {
  return jsonWords(text) ?? [...(draft.Shell.length > 0 ? draft.Shell : DEFAULT_SHELL), text];
}

function jsonWords(text: string): string[] | undefined {
  if (!text.startsWith('[')) return undefined;
  try {
    const parsed: unknown = JSON.parse(text);
    if (!Array.isArray(parsed)) return undefined;
    return parsed.every((word) => typeof word === 'string') ? parsed : undefined;
  } catch (error) {
    // Text that only looks like JSON is a command for the shell.
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function wordsOf(draft: Draft, text: string): string[] {
  return splitWords(text)
    .map((word) => expandWord(word, draft.Env))
    .filter((word) => word !== '');
}

function oneWord(draft: Draft, text: string, line: string): string {
  const words = splitWords(text);
  if (words.length !== 1) throw invalid(`${line.split(/\s/, 1)[0]!.toUpperCase()} requires exactly one argument`);
  return expandWord(words[0]!, draft.Env);
}

/** `A=b C=d`, or, in the old form, `A the rest of the line`. */
function pairsOf(draft: Draft, { keyword, text }: Instruction): [string, string][] {
  const words = splitWords(text);
  const name = keyword.toUpperCase();
  if (!words[0]!.includes('=')) {
    const [, key = '', value = ''] = /^(\S+)\s+([\s\S]+)$/.exec(text) ?? [];
    if (key === '') throw invalid(`${name} must have two arguments`);
    return [[expandWord(key, draft.Env), expandWord(value, draft.Env)]];
  }
  return words.map((word) => {
    const equals = word.indexOf('=');
    if (equals < 0) {
      throw invalid(`Syntax error - can't find = in ${JSON.stringify(word)}. Must be of the form: name=value`);
    }
    const key = expandWord(word.slice(0, equals), draft.Env);
    if (key === '') throw invalid(`${name} names can not be blank`);
    return [key, expandWord(word.slice(equals + 1), draft.Env)];
  });
}

/** `80`, `80/udp`, `8000-8010/tcp`. */
function portsOf(word: string, line: string): string[] {
  const [, first, last, protocol = 'tcp'] = /^(\d{1,5})(?:-(\d{1,5}))?(?:\/(tcp|udp|sctp))?$/i.exec(word) ?? [];
  const from = Number(first);
  const to = Number(last ?? first);
  if (!(from >= 1 && to <= 65535 && from <= to)) throw invalid(`Invalid containerPort: ${word} (${line})`);
  return Array.from({ length: to - from + 1 }, (_, index) => `${from + index}/${protocol.toLowerCase()}`);
}

const DURATIONS: Readonly<Record<string, 'Interval' | 'Timeout' | 'StartPeriod'>> = {
  interval: 'Interval',
  timeout: 'Timeout',
  'start-period': 'StartPeriod',
};

function healthcheckOf(draft: Draft, text: string, line: string): NonNullable<Draft['Healthcheck']> {
  const check: NonNullable<Draft['Healthcheck']> = {};
  let rest = text;
  for (let option = /^--([a-z-]+)=(\S+)\s*/.exec(rest); option !== null; option = /^--([a-z-]+)=(\S+)\s*/.exec(rest)) {
    const [all, key = '', value = ''] = option;
    const duration = DURATIONS[key];
    if (duration !== undefined) check[duration] = durationNs(value, line);
    else if (key === 'retries' && /^[1-9]\d{0,5}$/.test(value)) check.Retries = Number(value);
    else throw invalid(`Unknown flag or value: --${key}=${value} (${line})`);
    rest = rest.slice(all.length);
  }
  const [, kind = '', command = ''] = /^(\S+)\s*([\s\S]*)$/.exec(rest) ?? [];
  if (kind.toUpperCase() === 'NONE') {
    if (command !== '') throw invalid('HEALTHCHECK NONE takes no arguments');
    return { Test: ['NONE'] };
  }
  if (kind.toUpperCase() !== 'CMD') throw invalid(`Unknown type ${JSON.stringify(kind)} in HEALTHCHECK (try CMD)`);
  if (command === '') throw invalid('Missing command after HEALTHCHECK CMD');
  const words = jsonWords(command);
  return { Test: words === undefined ? ['CMD-SHELL', command] : ['CMD', ...words], ...check };
}

const UNIT_NS: Readonly<Record<string, number>> = { ns: 1, us: 1e3, µs: 1e3, ms: 1e6, s: 1e9, m: 60e9, h: 3600e9 };
const MIN_DURATION_NS = 1e6;

/** `1m30s`, `500ms`: 0, or at least a millisecond. */
function durationNs(text: string, line: string): number {
  const parts = [...text.matchAll(/(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)/g)];
  const isWhole = parts.map(([part]) => part).join('') === text && text !== '';
  const ns = Math.round(parts.reduce((sum, [, count, unit]) => sum + Number(count) * UNIT_NS[unit!]!, 0));
  if (text === '0') return 0;
  if (!isWhole || (ns !== 0 && ns < MIN_DURATION_NS))
    throw invalid(`invalid duration ${JSON.stringify(text)} (${line})`);
  return ns;
}

function setOf(keys: readonly string[]): Record<string, object> {
  return Object.fromEntries(keys.map((key) => [key, {}]));
}

function invalid(message: string): EngineError {
  return new EngineError('invalid', message);
}
