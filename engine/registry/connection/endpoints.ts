import { lookup } from 'node:dns/promises';
import { BlockList, isIP } from 'node:net';

import type { Config } from '../../config/daemon-config.ts';
import { EngineError } from '../../lib/errors.ts';

type Settings = Pick<Config, 'insecureRegistries' | 'registryMirrors'>;

/** An address of a registry. */
export type Endpoint = Readonly<{
  url: URL;
  /** Whether its certificate counts. */
  isVerified: boolean;
  isMirror: boolean;
}>;

export const DEFAULT_REGISTRY = 'docker.io';
const DEFAULT_ADDRESS = 'https://registry-1.docker.io/';
const LOOPBACK = '127.0.0.0/8';

/** The addresses of a registry in the order of the attempts: mirrors, https, and http if allowed. */
export async function endpointsOf(host: string, settings: Settings, useMirrors: boolean): Promise<Endpoint[]> {
  if (host === DEFAULT_REGISTRY) {
    const mirrors = useMirrors ? settings.registryMirrors.map(parseMirror) : [];
    return [
      ...(await Promise.all(
        mirrors.map(async (url) => ({ url, isVerified: !(await isInsecure(url.host, settings)), isMirror: true })),
      )),
      { url: new URL(DEFAULT_ADDRESS), isVerified: true, isMirror: false },
    ];
  }
  const isVerified = !(await isInsecure(host, settings));
  const https = { url: parseAddress(`https://${host}/`), isVerified, isMirror: false };
  return isVerified ? [https] : [https, { ...https, url: parseAddress(`http://${host}/`) }];
}

/** A mirror's address. */
export function parseMirror(text: string): URL {
  return parsePlainUrl(text, 'mirror');
}

/** An address of http or https. Throws `invalid` for one with a path, a query or credentials. */
export function parsePlainUrl(text: string, what: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain = url !== undefined && ['http:', 'https:'].includes(url.protocol);
  if (!isPlain)
    throw new EngineError('invalid', `invalid ${what}: ${JSON.stringify(text)} is not a URL of http or https`);
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '' || url.pathname !== '/') {
    throw new EngineError('invalid', `invalid ${what}: only scheme, host and port are allowed`);
  }
  return url;
}

/** A host, or a range of addresses, without a scheme. */
export function checkInsecure(text: string): void {
  if (text.includes('://') || !URL.canParse(`https://${text.replace(/\/\d+$/, '')}/`)) {
    throw new EngineError('invalid', `insecure registry ${text} is not valid: a host, host:port or CIDR is wanted`);
  }
}

/** By its name, or by one of its addresses in a range. */
async function isInsecure(host: string, { insecureRegistries }: Settings): Promise<boolean> {
  if (insecureRegistries.includes(host)) return true;
  const name = parseAddress(`https://${host}/`).hostname.replaceAll(/[[\]]/g, '');
  const ranges = new BlockList();
  for (const range of [LOOPBACK, ...insecureRegistries]) {
    const [, network = '', prefix = ''] = /^(.+)\/(\d+)$/.exec(range) ?? [];
    const family = isIP(network);
    if (family !== 0) ranges.addSubnet(network, Number(prefix), family === 6 ? 'ipv6' : 'ipv4');
  }
  const addresses = isIP(name) === 0 ? await addressesOf(name) : [{ address: name, family: isIP(name) }];
  return addresses.some(({ address, family }) => ranges.check(address, family === 6 ? 'ipv6' : 'ipv4'));
}

/** A name without addresses counts as secure: the connection then fails with the reason. */
async function addressesOf(name: string): Promise<{ address: string; family: number }[]> {
  try {
    return await lookup(name, { all: true });
  } catch {
    return [];
  }
}

function parseAddress(text: string): URL {
  if (URL.canParse(text)) return new URL(text);
  throw new EngineError('invalid', `${JSON.stringify(text)} is not an address of a registry`);
}
