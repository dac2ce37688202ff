import { posix } from 'node:path';

import { EngineError } from '../lib/errors.ts';
import { goDurationText } from '../lib/notations/go-duration.ts';
import { signalNumber } from '../lib/notations/signal-number.ts';
import type { Healthcheck } from '../records/healthcheck.ts';
import type { RunConfig } from '../records/run-config.ts';
import { exposedPorts } from './expose.ts';
import { quote, quotedList, quotedNumber } from './go-text.ts';
import type { CommandWords, Pair, Setting } from './instruction.ts';
import { MAX_SETTINGS_ENTRIES, MAX_SETTINGS_LENGTH, refuseAbove } from './limits.ts';

export type Settings = Readonly<{
  config: RunConfig;
  /** The author of the following steps. */
  maintainer: string;
  /** The file has a command of its own, which a new entrypoint does not remove. */
  hasCommand: boolean;
}>;

type Applied = Readonly<{
  settings: Settings;
  /** The line of the history, in docker's words. */
  comment: string;
  /** A message for the client of the build. */
  note?: string;
}>;

const SETTINGS = 'the list of settings of the image';
const DEFAULT_SHELL = ['/bin/sh', '-c'];

/**
 * Applies an instruction after the expansion of its variables; `toWords` expands ports, of which one variable may have
 * several.
 *
 * Throws `invalid`.
 */
export function applySetting(settings: Settings, step: Setting, toWords: (word: string) => string[]): Applied {
  const { config } = settings;
  const changed = (change: Partial<RunConfig>, comment: string): Applied => {
    const next = { ...config, ...change };
    refuseLargeSettings(next);
    return { settings: { ...settings, config: next }, comment };
  };
  switch (step.kind) {
    case 'env':
      return changed({ Env: withPairs(config.Env ?? [], step.pairs) }, `ENV${formatPairs(step.pairs)}`);
    case 'label': {
      const own = Object.fromEntries(step.pairs.map(({ name, value }) => [name, value]));
      return changed({ Labels: { ...config.Labels, ...own } }, `LABEL${formatPairs(step.pairs)}`);
    }
    case 'maintainer':
      return { settings: { ...settings, maintainer: step.maintainer }, comment: `MAINTAINER ${step.maintainer}` };
    case 'onbuild':
      return changed({ OnBuild: [...(config.OnBuild ?? []), step.trigger] }, `ONBUILD ${step.trigger}`);
    case 'workdir': {
      const path = workingDirectory(config.WorkingDir, step.path);
      return changed({ WorkingDir: path }, `WORKDIR ${path}`);
    }
    case 'cmd': {
      const words = commandLine(config, step.command) ?? [];
      const applied = changed({ Cmd: words }, `CMD ${quotedList(words)}`);
      const hasCommand = settings.hasCommand || step.command.words.length > 0;
      return { ...applied, settings: { ...applied.settings, hasCommand } };
    }
    case 'entrypoint': {
      const words = step.command.words.length === 0 ? null : commandLine(config, step.command);
      const change = { Entrypoint: words, ...(!settings.hasCommand && { Cmd: null }) };
      return changed(change, `ENTRYPOINT ${quotedList(words)}`);
    }
    case 'healthcheck':
      return { ...changed({ Healthcheck: step.healthcheck }, shownCheck(step.healthcheck)), ...noteOf(config) };
    case 'expose': {
      const words = step.ports.flatMap(toWords);
      const ports = Object.fromEntries(exposedPorts(words).map((port) => [port, {}]));
      return changed({ ExposedPorts: { ...config.ExposedPorts, ...ports } }, `EXPOSE ${words.join(' ')}`);
    }
    case 'user':
      return changed({ User: step.user }, `USER ${step.user}`);
    case 'volume': {
      if (step.paths.includes('')) throw new EngineError('invalid', 'VOLUME specified can not be an empty string');
      const paths = Object.fromEntries(step.paths.map((path) => [path, {}]));
      return changed({ Volumes: { ...config.Volumes, ...paths } }, `VOLUME [${step.paths.join(' ')}]`);
    }
    case 'stopsignal':
      signalNumber(step.signal);
      return changed({ StopSignal: step.signal }, `STOPSIGNAL ${step.signal}`);
    case 'shell':
      return changed({ Shell: step.words }, `SHELL [${step.words.join(' ')}]`);
  }
}

/** Throws `invalid` for settings that no image shall have. */
export function refuseLargeSettings(config: RunConfig): void {
  const { Env, Cmd, Entrypoint, OnBuild, Shell, ExposedPorts, Labels, Volumes } = config;
  const lists = [Env, Cmd, Entrypoint, OnBuild, Shell].map((list) => list?.length ?? 0);
  const maps = [ExposedPorts, Labels, Volumes].map((map) => Object.keys(map ?? {}).length);
  const entries = [...lists, ...maps].reduce((sum, count) => sum + count, 0);
  refuseAbove(MAX_SETTINGS_ENTRIES, entries, SETTINGS, 'entries');
  refuseAbove(MAX_SETTINGS_LENGTH, JSON.stringify(config).length, SETTINGS, 'characters');
}

/** The shell that runs commands in text form. */
export function shellOf({ Shell = [] }: RunConfig): readonly string[] {
  return Shell.length > 0 ? Shell : DEFAULT_SHELL;
}

/** The words to run. */
export function commandLine(config: RunConfig, { words, isForShell }: CommandWords): string[] {
  return isForShell ? [...shellOf(config), ...words] : [...words];
}

function withPairs(env: readonly string[], pairs: readonly Pair[]): string[] {
  const entries = [...env];
  const places = new Map<string, number>();
  for (const [at, entry] of entries.entries()) {
    const name = entry.split('=', 1)[0]!;
    if (!places.has(name)) places.set(name, at);
  }
  for (const { name, value } of pairs) {
    const at = places.get(name) ?? entries.length;
    places.set(name, at);
    entries[at] = `${name}=${value}`;
  }
  return entries;
}

function formatPairs(pairs: readonly Pair[]): string {
  return pairs.map(({ name, value }) => ` ${name}=${value}`).join('');
}

/** A relative path is resolved from the one before. */
export function workingDirectory(before: string, path: string): string {
  if (path === '') throw new EngineError('invalid', 'cannot normalize nothing');
  return path.startsWith('/') ? path : withoutEndSlash(posix.join('/', before, path));
}

function withoutEndSlash(path: string): string {
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}

/** As Go shows the fields of a check. */
function shownCheck({ Test = [], Interval = 0, Timeout = 0, StartPeriod = 0, Retries = 0 }: Healthcheck): string {
  const times = [Interval, Timeout, StartPeriod].map((ns) => quote(goDurationText(ns))).join(' ');
  return `HEALTHCHECK &{${quotedList(Test)} ${times} ${quotedNumber(Retries)}}`;
}

function noteOf({ Healthcheck: before }: RunConfig): { note?: string } {
  const test = before?.Test ?? [];
  if (test.length === 0 || test[0] === 'NONE') return {};
  return { note: `Note: overriding previous HEALTHCHECK: [${test.join(' ')}]` };
}
