import { DNS_ADDRESS } from '../../../networks/dns/rules.ts';

/** The client's or the daemon's own settings; the host's count for undefined ones. */
type Settings = Readonly<Partial<Record<'servers' | 'search' | 'options', readonly string[]>>>;

export type ResolvConfPlace = Readonly<{
  /** Whether it is in the host's network. */
  isHost: boolean;
  /** Whether it is in a user network, and so uses the daemon's resolver. */
  usesResolver: boolean;
}>;

/** Google's, as in docker: for containers that cannot reach any of the host's servers. */
const PUBLIC_SERVERS = ['8.8.8.8', '8.8.4.4'];

/**
 * The resolv.conf of a container. Without settings of its own it is the host's, with its comments, and without servers on
 * the host's loopback, where the container is not.
 */
export function resolvConfOf(host: string, settings: Settings, { isHost, usesResolver }: ResolvConfPlace): string {
  const { servers, search, options } = settings;
  const isOwn = usesResolver || servers !== undefined || search !== undefined || options !== undefined;
  if (!isOwn) return isHost ? host : withReachableServers(host);
  const asked = usesResolver ? [DNS_ADDRESS] : (servers ?? serversOf(host, isHost));
  const domains = search ?? wordsAfter(host, ['search', 'domain']).at(-1) ?? [];
  const kept = options ?? wordsAfter(host, ['options']).flat();
  // So that a name without a dot is asked as it is, before the search domains.
  const ndots = usesResolver && !kept.some((option) => option.startsWith('ndots:')) ? ['ndots:0'] : [];
  return [
    ...(domains.length === 0 || domains.includes('.') ? [] : [['search', ...domains]]),
    ...asked.map((server) => ['nameserver', server]),
    ...(kept.length + ndots.length === 0 ? [] : [['options', ...kept, ...ndots]]),
  ]
    .map((words) => `${words.join(' ')}\n`)
    .join('');
}

/** Whether two files have the same lines but for comments, empty ones and their order. */
export function hasSameSettings(a: string, b: string): boolean {
  const [first, second] = [a, b].map((text) => linesOf(text).toSorted().join('\n'));
  return first === second;
}

function withReachableServers(host: string): string {
  const lines = host.split('\n').filter((line) => !isLoopback(wordsOf(line)));
  if (lines.some((line) => wordsOf(line)[0] === 'nameserver')) return lines.join('\n');
  const end = lines.at(-1) === '' ? lines.slice(0, -1) : lines;
  return [...end, ...PUBLIC_SERVERS.map((server) => `nameserver ${server}`), ''].join('\n');
}

function serversOf(host: string, isHost: boolean): readonly string[] {
  const usable = linesOf(host).filter((line) => isHost || !isLoopback(wordsOf(line)));
  const servers = usable.map(wordsOf).flatMap(([keyword, server = '']) => (keyword === 'nameserver' ? [server] : []));
  return servers.length > 0 || isHost ? servers : PUBLIC_SERVERS;
}

function isLoopback([keyword, server = '']: readonly string[]): boolean {
  return keyword === 'nameserver' && (server.startsWith('127.') || server === '::1');
}

function wordsAfter(host: string, keywords: readonly string[]): string[][] {
  return linesOf(host)
    .map(wordsOf)
    .flatMap(([keyword = '', ...words]) => (keywords.includes(keyword) ? [words] : []));
}

/** Lines with a setting, without comments at their end. */
function linesOf(text: string): string[] {
  return text.split('\n').flatMap((line) => wordsOf(line).join(' ') || []);
}

/** A keyword begins its line. */
function wordsOf(line: string): string[] {
  return /^[^\s#;]/.test(line)
    ? line
        .replace(/\s[#;].*$/, '')
        .trim()
        .split(/\s+/)
    : [];
}
