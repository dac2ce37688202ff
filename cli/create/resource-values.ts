import { readFileSync } from 'node:fs';

import { READ, splitOnce } from '../command-line/values.ts';
import { EXIT, Exit, UsageError } from '../exit-codes.ts';
import type { CreateRequest } from './request.ts';

const CPU_PERIOD_US = 100_000;

export function setCpus({ host }: CreateRequest, cpus: number): void {
  if (host.CpuPeriod !== undefined || host.CpuQuota !== undefined) {
    throw new UsageError('conflicting options: --cpus and --cpu-period or --cpu-quota');
  }
  if (cpus <= 0) throw new UsageError(`invalid argument "${cpus}" for "--cpus" flag: expected more than 0`);
  // The field that newer versions of the API have for it is not in 1.24; the kernel does the same with these.
  host.CpuPeriod = CPU_PERIOD_US;
  host.CpuQuota = Math.round(cpus * CPU_PERIOD_US);
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

/** The engine takes a profile's content, the user names its file. */
export function securityOption(option: string): string {
  const [name, value] = splitOnce(option.replace(/^(\w+):/, '$1='), '=');
  if (name !== 'seccomp' || value === '' || value === 'unconfined' || value === 'builtin') return option;
  try {
    return `seccomp=${JSON.stringify(JSON.parse(readFileSync(value, 'utf8')))}`;
  } catch (error) {
    throw new Exit(EXIT.usage, `opening the seccomp profile ${value} failed: ${(error as Error).message}`);
  }
}
