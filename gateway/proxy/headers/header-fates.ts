/** Hop-by-hop headers, which are never forwarded. */
export const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
]);

/** Headers by which some servers read another method or path than the one that was judged. */
const OVERRIDING = new Set([
  'x-http-method-override',
  'x-http-method',
  'x-method-override',
  'x-original-url',
  'x-rewrite-url',
]);

/** Only the first value was judged, so only the first one is forwarded. */
const ONCE = new Set(['authorization', 'host', 'content-type', 'content-length']);

/** Headers by which the gateway judges a request. */
const JUDGED = new Set(['content-type', 'content-length', 'content-encoding']);

/**
 * Headers in which a proxy speaks for its client: the client's address, name and certificate, the host and the scheme
 * that it used. Servers believe them, so that only trusted proxies may set them.
 */
const SPEAKS_FOR_CLIENT = [
  /^(?:x-)?forwarded(?:-|$)/,
  /(?:^|-)(?:client|connecting|remote|real|user|originating|source|pseudo)-?(?:ip|ipv4|ipv6|addr|address)$/,
  /^(?:cf|cloudfront|fastly|x-envoy|x-azure|x-arr|x-appengine|x-original|x-nginx)-/,
  /^(?:x-)?(?:remote-(?:user|name|email|groups?|login)|webauth-.*|auth-request-.*|authenticated-.*|proxy-?user(?:-.*)?)$/,
  /^(?:x-)?(?:ssl-.*|client-(?:cert|dn|verify).*|amzn-mtls-.*|front-end-https)$/,
  /^x-(?:scheme|url-scheme|host|http-host-override|backend-host|server-name|real-port|client-port)$/,
];

/** The fate of a request's header on its way to the upstream. */
export type Fate =
  | 'pass'
  | 'drop'
  /** Only the first one passes. */
  | 'once'
  /** Passes from a trusted proxy. */
  | 'trusted'
  /** A name with `_` for `-`: dropped where its other spelling may hold a credential. */
  | 'alias';

type Known = Readonly<{ fate: Fate; lower: string; spelled: string }>;

const MAX_REMEMBERED = 2000;
const remembered = new Map<string, Known>();

/** The fate of a header by its name, in any spelling. Names are few, so that most are looked up. */
export function fateOf(name: string): Known {
  const before = remembered.get(name);
  if (before !== undefined) return before;
  const lower = name.toLowerCase();
  // Servers that turn headers into variables (CGI, WSGI, Rack) cannot tell `_` from `-`.
  const spelled = lower.replaceAll('_', '-');
  const known = { fate: find(lower, spelled), lower, spelled };
  if (remembered.size >= MAX_REMEMBERED) remembered.clear();
  remembered.set(name, known);
  return known;
}

function find(lower: string, spelled: string): Fate {
  const isAlias = spelled !== lower;
  if (HOP_BY_HOP.has(spelled) || lower === 'expect' || (isAlias && JUDGED.has(spelled))) return 'drop';
  if (OVERRIDING.has(spelled)) return 'drop';
  if (spelled === 'x-forwarded-for') return 'drop'; // written anew
  if (SPEAKS_FOR_CLIENT.some((pattern) => pattern.test(spelled))) return isAlias ? 'drop' : 'trusted';
  if (isAlias) return 'alias';
  return ONCE.has(lower) ? 'once' : 'pass';
}
