import { resolve } from 'node:path';

import { READ } from '../command-line/values.ts';
import { UsageError } from '../exit-codes.ts';
import type { CreateRequest } from './request.ts';

/** `-v`: a path alone is an anonymous volume; a source that begins with a dot is a folder beside the caller. */
export function setVolumes({ config, host }: CreateRequest, list: readonly string[]): void {
  for (const volume of list) {
    if (!volume.includes(':')) (config.Volumes ??= {})[volume] = {};
    else (host.Binds ??= []).push(volume.startsWith('.') ? volume.replace(/^[^:]*/, (path) => resolve(path)) : volume);
  }
}

type Words = Record<string, string>;

/** The keys of `--mount`, with their shorter names. */
const KEYS: Readonly<Record<string, string>> = {
  type: 'type',
  source: 'source',
  src: 'source',
  destination: 'target',
  dst: 'target',
  target: 'target',
  readonly: 'readonly',
  ro: 'readonly',
  'bind-propagation': 'propagation',
  'volume-nocopy': 'nocopy',
  'tmpfs-size': 'size',
  'tmpfs-mode': 'mode',
  consistency: 'consistency',
};
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  bind: ['propagation'],
  volume: ['nocopy'],
  tmpfs: ['size', 'mode'],
};

/** `--mount`, said with what API 1.24 has: binds and tmpfs. */
export function setMounts({ config, host }: CreateRequest, list: readonly string[]): void {
  for (const text of list) {
    const words = wordsOf(text);
    const { type = 'volume', source, target } = words;
    check(text, type, words);
    if (type === 'tmpfs') (host.Tmpfs ??= {})[target!] = tmpfsOptions(text, words);
    else if (source === undefined && options(words).length === 0) (config.Volumes ??= {})[target!] = {};
    else if (source === undefined) throw wrong(text, 'an anonymous volume has no options');
    else (host.Binds ??= []).push([type === 'bind' ? resolve(source) : source, target, ...options(words)].join(':'));
  }
}

function wordsOf(text: string): Words {
  const words: Words = {};
  // A word in quotes may have commas, as in CSV.
  for (const [, quoted, plain = ''] of text.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)) {
    const [name = '', ...value] = (quoted?.replaceAll('""', '"') ?? plain).split('=');
    const key = KEYS[name.trim().toLowerCase()];
    if (key === undefined) throw wrong(text, `'${name}' cannot be used with API 1.24`);
    words[key] = value.length === 0 && (key === 'readonly' || key === 'nocopy') ? 'true' : value.join('=');
  }
  return words;
}

function check(text: string, type: string, words: Words): void {
  const allowed = ALLOWED[type];
  if (allowed === undefined) throw wrong(text, `the type is bind, volume or tmpfs, not '${type}'`);
  if (words['target'] === undefined || words['target'] === '') throw wrong(text, 'target is required');
  if (type === 'bind' && words['source'] === undefined) throw wrong(text, 'source is required');
  if (type === 'tmpfs' && words['source'] !== undefined) throw wrong(text, 'a tmpfs has no source');
  if (type === 'volume' && words['source']?.startsWith('/') === true)
    throw wrong(text, 'a volume has a name, not a path');
  for (const key of ['propagation', 'nocopy', 'size', 'mode']) {
    if (words[key] !== undefined && !allowed.includes(key)) throw wrong(text, `'${key}' is not for ${type}`);
  }
  for (const key of ['readonly', 'nocopy']) {
    if (words[key] !== undefined && READ.boolean(words[key]) === undefined)
      throw wrong(text, `'${key}' is true or false`);
  }
}

function options(words: Words): string[] {
  const list = [
    ...(READ.boolean(words['readonly'] ?? '') === true ? ['ro'] : []),
    ...(words['propagation'] === undefined ? [] : [words['propagation']]),
    ...(READ.boolean(words['nocopy'] ?? '') === true ? ['nocopy'] : []),
  ];
  return list.length === 0 ? [] : [list.join(',')];
}

function tmpfsOptions(text: string, words: Words): string {
  const size = words['size'] === undefined ? undefined : READ.bytes(words['size']);
  if (words['size'] !== undefined && size === undefined) throw wrong(text, 'tmpfs-size is a size');
  return [
    ...(READ.boolean(words['readonly'] ?? '') === true ? ['ro'] : []),
    ...(size === undefined ? [] : [`size=${size}`]),
    ...(words['mode'] === undefined ? [] : [`mode=${words['mode']}`]),
  ].join(',');
}

function wrong(text: string, reason: string): UsageError {
  return new UsageError(`invalid argument "${text}" for "--mount" flag: ${reason}`);
}
