import { BlockList, isIP } from 'node:net';

import { EngineError } from './errors.ts';

type Environment = Readonly<Record<string, string | undefined>>;

const DEFAULT_PORTS: ReadonlyMap<string, string> = new Map(Object.entries({ 'http:': '80', 'https:': '443' }));
const PROTOCOLS: readonly string[] = ['http:', 'https:', 'socks5:'];

/** The proxies of the environment as their variables have them, as Go reads them: names in capitals go first. */
export function proxySettings(environment: Environment = process.env): { http: string; https: string; none: string } {
  const valueOf = (name: string): string => environment[name] || environment[name.toLowerCase()] || '';
  return { http: valueOf('HTTP_PROXY'), https: valueOf('HTTPS_PROXY'), none: valueOf('NO_PROXY') };
}

/**
 * The proxy by which an address is asked, by Go's rules; undefined: it is asked directly. Throws `failed` for a value that is
 * no address; the message does not contain it, because it may have a password.
 */
export function proxyFor(url: URL, environment: Environment = process.env): URL | undefined {
  const { http, https, none } = proxySettings(environment);
  const [name, value] = url.protocol === 'https:' ? ['HTTPS_PROXY', https] : ['HTTP_PROXY', http];
  if (value === '' || goesDirect(url, none)) return undefined;
  const proxy = parseProxy(value);
  if (proxy === undefined) throw new EngineError('failed', `the environment's ${name} is not an address of a proxy`);
  return proxy;
}

/** The value of a proxy's variable as docker shows it: without name and password. */
export function shownProxy(value: string): string {
  const proxy = parseProxy(value);
  if (proxy === undefined) return value.replace(/^.*@/s, 'xxxxx:xxxxx@');
  if (proxy.username === '' && proxy.password === '') return value;
  return value.replace(/^(.*:\/\/)?.*@/s, '$1xxxxx:xxxxx@');
}

/** The scheme may be missing. */
function parseProxy(value: string): URL | undefined {
  return [value, `http://${value}`]
    .filter((text) => URL.canParse(text))
    .map((text) => new URL(text))
    .find(({ protocol, hostname }) => PROTOCOLS.includes(protocol) && hostname !== '');
}

function goesDirect({ hostname, port, protocol }: URL, none: string): boolean {
  const host = hostname.toLowerCase().replaceAll(/[[\]]|\.$/g, '');
  if (host === 'localhost' || inRange(host, '127.0.0.0', 8) || host === '::1') return true;
  const isNamed = (entry: string): boolean => namesHost(entry, host, port || DEFAULT_PORTS.get(protocol)!);
  return none
    .toLowerCase()
    .split(/[,\s]+/)
    .some(isNamed);
}

/** An entry of NO_PROXY: `*`, a range, an address, or a domain, which stands for all below it. */
function namesHost(entry: string, host: string, port: string): boolean {
  if (entry === '') return false;
  if (entry === '*') return true;
  const [, network = '', prefix = ''] = /^(.+)\/(\d+)$/.exec(entry) ?? [];
  if (isIP(network) !== 0) return inRange(host, network, Number(prefix));
  const [, bracketed, plain = '', onlyPort] = /^(?:\[(.*)\]|([^:]*|.*:.*:.*?))(?::(\d+))?$/.exec(entry) ?? [];
  if (onlyPort !== undefined && onlyPort !== port) return false;
  const name = (bracketed ?? plain).replace(/^\*(?=\.)/, '');
  if (isIP(name) !== 0) return name === host;
  return name.startsWith('.') ? host.endsWith(name) : host === name || host.endsWith(`.${name}`);
}

function inRange(address: string, network: string, prefix: number): boolean {
  const family = isIP(address);
  if (family === 0 || family !== isIP(network) || prefix > (family === 6 ? 128 : 32)) return false;
  const list = new BlockList();
  const type = family === 6 ? 'ipv6' : 'ipv4';
  list.addSubnet(network, prefix, type);
  return list.check(address, type);
}
