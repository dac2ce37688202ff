import { UsageError } from '../exit-codes.ts';
import type { Command, Flag, Flags, Given, Kind, Values } from './command.ts';
import { READ } from './values.ts';

export type Parsed = { help: true } | { help: false; words: string[]; flags: Given<Flags> };
type Written = Record<string, Values[Kind] | undefined>;
type Found = { name: string; flag: Flag; written: string };

/** Reads a command's words as docker's command line does: `--name value`, `--name=value`, `-n value`, `-nvalue`, `-abc`. */
export function parse(command: Pick<Command, 'flags' | 'passesOn'>, argv: readonly string[]): Parsed {
  const given = initialOf(command.flags);
  const words: string[] = [];
  const rest = [...argv];
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    if (word === '--') {
      words.push(...rest);
      break;
    }
    if (!word.startsWith('-') || word === '-') {
      words.push(word);
      if (command.passesOn !== true) continue;
      words.push(...rest);
      break;
    }
    if (asksForHelp(command.flags, word)) return { help: true };
    if (word.startsWith('--')) long(command.flags, given, word, rest);
    else shorts(command.flags, given, word, rest);
  }
  return { help: false, words, flags: given };
}

function initialOf(flags: Flags): Written {
  const given: Written = {};
  for (const [name, flag] of Object.entries(flags)) {
    if (flag.kind === 'list') given[name] = [];
    else if (flag.initial !== undefined) given[name] = READ[flag.kind](flag.initial);
    else given[name] = flag.kind === 'boolean' ? false : undefined;
  }
  return given;
}

function asksForHelp(flags: Flags, word: string): boolean {
  return word === '--help' || (word === '-h' && !Object.values(flags).some(({ short }) => short === 'h'));
}

function long(flags: Flags, given: Written, word: string, rest: string[]): void {
  const at = word.indexOf('=');
  const name = word.slice(2, at < 0 ? undefined : at);
  const flag = Object.hasOwn(flags, name) ? flags[name]! : undefined;
  if (flag === undefined) throw new UsageError(`unknown flag: --${name}`);
  const found = { name, flag, written: writtenOf(name, flag) };
  if (at >= 0) setFlag(given, found, word.slice(at + 1));
  else setFlag(given, found, flag.kind === 'boolean' ? 'true' : next(found, rest));
}

function shorts(flags: Flags, given: Written, word: string, rest: string[]): void {
  for (let at = 1; at < word.length; at += 1) {
    const letter = word[at]!;
    const name = Object.keys(flags).find((each) => flags[each]!.short === letter);
    if (name === undefined) throw new UsageError(`unknown shorthand flag: '${letter}' in ${word}`);
    const found = { name, flag: flags[name]!, written: writtenOf(name, flags[name]!) };
    const after = word.slice(at + 1);
    if (found.flag.kind === 'boolean' && !after.startsWith('=')) {
      setFlag(given, found, 'true');
      continue;
    }
    setFlag(given, found, after === '' ? next(found, rest) : after.replace(/^=/, ''));
    return;
  }
}

function writtenOf(name: string, { short }: Flag): string {
  return short === undefined ? `--${name}` : `-${short}, --${name}`;
}

function next({ written }: Found, rest: string[]): string {
  const value = rest.shift();
  if (value === undefined) throw new UsageError(`flag needs an argument: ${written}`);
  return value;
}

function setFlag(given: Written, { name, flag, written }: Found, text: string): void {
  if (flag.refused !== undefined) throw new UsageError(`--${name} cannot be used: ${flag.refused}`);
  if (flag.kind === 'list') {
    (given[name] as string[]).push(text);
    return;
  }
  const value = READ[flag.kind](text);
  if (value === undefined)
    throw new UsageError(`invalid argument "${text}" for "${written}" flag: expected ${EXPECTED[flag.kind]}`);
  given[name] = value;
}

const EXPECTED = {
  boolean: 'true or false',
  text: 'a text',
  integer: 'a whole number',
  decimal: 'a number such as 1.5',
  bytes: 'a size such as 64m, 1g or a number of bytes',
  duration: 'a duration such as 30s or 1m30s',
} as const;

/** Refuses too few and too many words, in docker's sentences. */
export function checkCount(name: string, [fewest, most]: readonly [number, number], count: number): void {
  if (count >= fewest && count <= most) return;
  if (most === 0) throw new UsageError(`'gantry ${name}' accepts no arguments`);
  if (fewest === most) throw new UsageError(`'gantry ${name}' requires ${argumentsText(fewest)}`);
  if (count < fewest) throw new UsageError(`'gantry ${name}' requires at least ${argumentsText(fewest)}`);
  throw new UsageError(`'gantry ${name}' requires at most ${argumentsText(most)}`);
}

function argumentsText(count: number): string {
  return `${count} argument${count === 1 ? '' : 's'}`;
}
