import { isIP } from 'node:net';

import { groupId } from '../host/groups.ts';
import { checkRemap } from '../host/users/remap.ts';
import { EngineError } from '../lib/errors.ts';
import { messageOf } from '../lib/failure-message.ts';
import { parseGenericResources } from '../lib/notations/generic-resources.ts';
import { cgroupSettingsChecks } from './cgroup-driver.ts';
import { isLoopback, parseHost, parseMetricsAddress, parsePageAddress } from './hosts.ts';
import { readRateLimits } from './rate-limits.ts';
import type { ConfigFile, ConfigKey } from './schema.ts';
import { checkCertificateFiles, readSettingsFile } from './settings-files.ts';

export type Problem = Readonly<{ key: ConfigKey; message: string }>;
type SettingsCheck = (settings: ConfigFile) => void;
/**
 * Checks by the key under which a problem is reported. Each throws an error whose message makes sense without the key.
 */
export type SettingsChecks = Readonly<Partial<Record<ConfigKey, SettingsCheck>>>;

const ULIMITS = ['as', 'core', 'cpu', 'data', 'fsize', 'locks', 'memlock', 'msgqueue', 'nice', 'nofile'];
const MORE_ULIMITS = ['nproc', 'rss', 'rtprio', 'rttime', 'sigpending', 'stack'];
const BUILT_IN_RUNTIMES = ['runc', 'crun'];

/** Checks that the schema cannot express, for settings that belong to no domain. */
const CHECKS: SettingsChecks = {
  hosts: checkHosts,
  'data-root': (settings) => checkFolder(settings['data-root']),
  'exec-root': (settings) => checkFolder(settings['exec-root']),
  pidfile: ({ pidfile }) => checkFolder(pidfile),
  group: ({ group }) => group !== '' && void groupId(group),
  tlscert: checkCertificate,
  tlscacert: checkAuthority,
  'api-rate-limit': (settings) => settings['api-rate-limit'] !== '' && void readRateLimits(settings['api-rate-limit']),
  'metrics-addr': (settings) => settings['metrics-addr'] !== '' && void parseMetricsAddress(settings['metrics-addr']),
  page: ({ page, tlsverify }) => page !== '' && void parsePageAddress(page, tlsverify),
  dns: ({ dns }) => {
    for (const server of dns) refuseIf(isIP(server) === 0, `${server} is not an ip address`);
  },
  labels: checkLabels,
  'node-generic-resources': (settings) => void parseGenericResources(settings['node-generic-resources']),
  'userns-remap': (settings) => checkRemap(settings['userns-remap']),
  'default-ulimits': checkUlimits,
  'default-runtime': (settings) => {
    const name = settings['default-runtime'];
    const known = ['', ...BUILT_IN_RUNTIMES, ...Object.keys(settings.runtimes)];
    refuseIf(!known.includes(name), `specified default runtime '${name}' does not exist`);
  },
};

/** All problems of settings whose types are right; `ofDomains` are the domains' own checks. */
export function checkSettings(settings: ConfigFile, ofDomains: readonly SettingsChecks[]): Problem[] {
  return [CHECKS, cgroupSettingsChecks, ...ofDomains].flatMap(Object.entries<SettingsCheck>).flatMap(([key, check]) => {
    try {
      check(settings);
      return [];
    } catch (error) {
      return [{ key: key as ConfigKey, message: messageOf(error) }];
    }
  });
}

function checkHosts(settings: ConfigFile): void {
  const tls = settings.tls || settings.tlsverify;
  refuseIf(settings.hosts.length === 0, 'at least one host is required');
  for (const text of settings.hosts) {
    const host = parseHost(text, tls);
    if (host.kind !== 'tcp' || tls || settings['insecure-tcp'] || isLoopback(host.address)) continue;
    throw new EngineError(
      'invalid',
      `${text}: everyone who can reach TCP without TLS gets root; use --tlsverify, a loopback address, or --insecure-tcp`,
    );
  }
}

/** Reads the files at once, so that a daemon with a wrong file refuses to start before it changes anything. */
function checkCertificate({ tls, tlsverify, tlscert, tlskey }: ConfigFile): void {
  if (!tls && !tlsverify) return;
  refuseIf(tlscert === '' || tlskey === '', 'TLS needs --tlscert and --tlskey');
  checkCertificateFiles(tlscert, tlskey);
}

function checkAuthority({ tlsverify, tlscacert }: ConfigFile): void {
  if (!tlsverify) return;
  refuseIf(tlscacert === '', '--tlsverify needs --tlscacert');
  refuseIf(
    !readSettingsFile(tlscacert).includes('-----BEGIN CERTIFICATE-----'),
    `${tlscacert}: does not contain a certificate`,
  );
}

function checkLabels({ labels }: ConfigFile): void {
  const values = new Map<string, string>();
  for (const label of labels) {
    const [, key, value = ''] = /^([^=]+)=(.*)$/s.exec(label) ?? [];
    if (key === undefined) throw new EngineError('invalid', `bad attribute format: ${label} (expected key=value)`);
    const before = values.get(key);
    refuseIf(before !== undefined && before !== value, `conflict labels for ${key}=${before} and ${label}`);
    values.set(key, value);
  }
}

function checkUlimits(settings: ConfigFile): void {
  for (const [name, { Soft, Hard }] of Object.entries(settings['default-ulimits'])) {
    refuseIf(![...ULIMITS, ...MORE_ULIMITS].includes(name), `invalid ulimit type: ${name}`);
    const isMore = Hard !== -1 && (Soft === -1 || Soft > Hard);
    refuseIf(isMore, `ulimit soft limit must be less than or equal to hard limit: ${Soft} > ${Hard} (${name})`);
  }
}

function checkFolder(path: string): void {
  refuseIf(!path.startsWith('/'), `"${path}" is not an absolute path`);
}

function refuseIf(wrong: boolean, message: string): void {
  if (wrong) throw new EngineError('invalid', message);
}
