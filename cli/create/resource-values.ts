import { readFileSync } from 'node:fs';

import { mapOf, READ, splitOnce } from '../command-line/values.ts';
import { EXIT, Exit, UsageError } from '../exit-codes.ts';
import { reasonOf } from '../failures.ts';
import type { CreateRequest } from './request.ts';

export function setCpus({ host }: CreateRequest, cpus: number): void {
  host.NanoCpus = Math.round(cpus * 1e9);
}

/** `all`, a count, or words such as `device=0` and `capabilities=utility`. */
export function setGpus({ host }: CreateRequest, text: string): void {
  const words = mapOf(text.split(','));
  const [only = ''] = Object.keys(words);
  const count = only === 'all' ? -1 : READ.integer(only);
  const device = words['device'];
  host.DeviceRequests = [
    {
      Driver: words['driver'] ?? '',
      ...(device === undefined ? { Count: count ?? 1 } : { DeviceIDs: [device] }),
      Capabilities: [['gpu', ...(words['capabilities'] === undefined ? [] : [words['capabilities']])]],
    },
  ];
}

export function deviceOf(text: string): { PathOnHost: string; PathInContainer: string; CgroupPermissions: string } {
  const [onHost = '', second = '', third] = text.split(':');
  // `/dev/x:r` has permissions in the second place.
  const onlyModes = third === undefined && /^[rwm]{1,3}$/.test(second);
  return {
    PathOnHost: onHost,
    PathInContainer: onlyModes || second === '' ? onHost : second,
    CgroupPermissions: third ?? (onlyModes ? second : 'rwm'),
  };
}

export function weightOfDevice(text: string): { Path: string; Weight: number } {
  const { Path, Rate } = rateOfDevice(text);
  return { Path, Weight: Rate };
}

export function rateOfDevice(text: string): { Path: string; Rate: number } {
  return deviceValue(text, READ.integer);
}

export function bytesOfDevice(text: string): { Path: string; Rate: number } {
  return deviceValue(text, READ.bytes);
}

function deviceValue(text: string, read: (text: string) => number | undefined): { Path: string; Rate: number } {
  const [Path, value] = splitOnce(text, ':');
  const Rate = read(value);
  if (!Path.startsWith('/dev/') || Rate === undefined || Rate < 0) {
    throw new UsageError(`invalid value "${text}": expected /dev/NAME:NUMBER`);
  }
  return { Path, Rate };
}

export function ulimitOf(text: string): { Name: string; Soft: number; Hard: number } {
  const match = /^(\w+)=(-?\d+)(?::(-?\d+))?$/.exec(text);
  if (match === null) throw new UsageError(`invalid ulimit "${text}": expected NAME=SOFT[:HARD]`);
  const [, Name = '', soft, hard = soft] = match;
  const [Soft, Hard] = [Number(soft), Number(hard)];
  if (Hard !== -1 && (Soft === -1 || Soft > Hard)) {
    throw new UsageError(`invalid ulimit "${text}": the soft limit must not be above the hard one`);
  }
  return { Name, Soft, Hard };
}

export function setRestart({ host }: CreateRequest, policy: string): void {
  const match = /^(no|always|unless-stopped|on-failure)(?::(\d+))?$/.exec(policy);
  if (match === null || (match[2] !== undefined && match[1] !== 'on-failure')) {
    throw new UsageError(
      `invalid restart policy "${policy}": expected no, always, unless-stopped or on-failure[:COUNT]`,
    );
  }
  host.RestartPolicy = { Name: match[1]!, MaximumRetryCount: Number(match[2] ?? 0) };
}

type Health = NonNullable<CreateRequest['config']['Healthcheck']>;

export function setHealth({ config }: CreateRequest, part: Health): void {
  config.Healthcheck = { ...config.Healthcheck, ...part };
}

export function setNoHealth({ config }: CreateRequest): void {
  if (config.Healthcheck !== undefined) throw new UsageError('--no-healthcheck conflicts with --health-* options');
  config.Healthcheck = { Test: ['NONE'] };
}

/** The mode of a namespace; it is checked here, because the engine takes an unknown one for none. */
export function namespaceMode(name: 'pid' | 'userns' | 'uts', mode: string): string {
  const isKnown = mode === '' || mode === 'host' || (name === 'pid' && /^container:./.test(mode));
  if (isKnown) return mode;
  const known = name === 'pid' ? 'host or container:NAME' : 'host';
  throw new UsageError(`invalid argument "${mode}" for "--${name}" flag: expected ${known}`);
}

/** Reads the profile's file, because the API takes its content. */
export function securityOption(option: string): string {
  const [name, value] = splitOnce(option.replace(/^(\w+):/, '$1='), '=');
  if (name !== 'seccomp' || value === '' || value === 'unconfined' || value === 'builtin') return option;
  try {
    return `seccomp=${JSON.stringify(JSON.parse(readFileSync(value, 'utf8')))}`;
  } catch (error) {
    throw new Exit(EXIT.usage, `opening the seccomp profile ${value} failed: ${reasonOf(error)}`);
  }
}
