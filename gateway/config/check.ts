import { problemsOf } from '@gantry/limiter/rules.ts';

import { cidrProblem, isForwardedFor, isLoopback } from '../identity/address.ts';
import { callerKey } from '../identity/caller-key.ts';
import { rangesOf } from '../identity/networks.ts';
import { readFile, reasonOf } from '../lib/reason.ts';
import { templateProblem } from '../routes/table.ts';
import { checkStore } from './check-store.ts';
import { listenAddress } from './listen.ts';
import { checkSocketPath, type Path, type Problem, type Wrong } from './problem.ts';
import { rulesFrom } from './rules.ts';
import type { Config } from './schema.ts';
import type { IdentitySettings } from './settings/identities.ts';
import { checkTls } from './tls.ts';
import { upstreamAddress } from './upstream-address.ts';

/** Further lines of a file that are no addresses are not listed. */
const MAX_WRONG_RANGES = 10;
const CALLER_EXPECTED = 'a caller is expected: user:ID, installation:ID, app:ID, workflow:ID or ip:ADDRESS';

/** Headers of answers that HTTP, browsers or the limits need. */
const NOT_A_COST =
  /^(?:content-.*|transfer-encoding|connection|trailer|set-cookie|location|etag|date|vary|x-ratelimit-.*)$/i;

/** Checks beyond a schema: names that must exist, keys that need each other, texts with a form of their own. */
export function crossCheck(config: Config): Problem[] {
  const problems: Problem[] = [];
  const wrong = (path: Path, message: string): void => void problems.push({ path, message });
  for (const [index, text] of [config.upstream].flat().entries()) {
    if (upstreamAddress(text) !== undefined) continue;
    const path = typeof config.upstream === 'string' ? ['upstream'] : ['upstream', index];
    wrong(path, `http://host:port, https://host:port or unix:/path is expected, not "${text}"`);
  }
  checkListen(config, wrong);
  checkDecisions(config, wrong);
  checkStore(config, wrong);
  for (const [index, range] of config.trustProxy.entries()) {
    const problem = cidrProblem(range);
    if (problem !== undefined) wrong(['trustProxy', index], problem);
  }
  if (config.clientAddress.hops !== undefined && !isForwardedFor(config.clientAddress.header))
    wrong(['clientAddress', 'hops'], 'it counts entries of X-Forwarded-For, and clientAddress.header is another one');
  if (NOT_A_COST.test(config.cost.header))
    wrong(['cost', 'header'], `clients need ${config.cost.header}, and would not get it`);
  checkRoutes(config, wrong);
  checkIdentities(config.identities, wrong);
  checkIntrospection(config, wrong);
  checkNetworks(config, wrong);
  for (const [index, key] of config.exempt.callers.entries()) {
    if (callerKey(key) === undefined) wrong(['exempt', 'callers', index], CALLER_EXPECTED);
  }
  for (const key of Object.keys(config.overrides)) {
    if (callerKey(key) !== undefined) continue;
    wrong(['overrides', key], CALLER_EXPECTED);
  }
  for (const version of config.apiVersions.next) {
    if (config.apiVersions.known.includes(version)) wrong(['apiVersions', 'next'], `${version} stands under known too`);
  }
  for (const { path, message } of problemsOf(rulesFrom(config))) {
    const isOutside = ['categories', 'shadow', 'ban'].includes(path[0] ?? '');
    wrong(isOutside ? path : ['secondary', ...path], message);
  }
  return problems;
}

function checkListen({ listen, workers, admin, tls }: Config, wrong: Wrong): void {
  if (tls !== undefined) {
    try {
      checkTls(tls);
    } catch (error) {
      wrong(['tls'], reasonOf(error));
    }
  }
  for (const [index, text] of [listen].flat().entries()) {
    const path = typeof listen === 'string' ? ['listen'] : ['listen', index];
    const address = listenAddress(text);
    if (address === undefined) wrong(path, `address:port or unix:/path is expected, not "${text}"`);
    else if ('tls' in address && tls === undefined) wrong(path, 'it needs tls.certFile and tls.keyFile');
    else if (workers > 1 && 'path' in address) wrong(path, 'several workers can share a port, but not a Unix socket');
    else if ('path' in address) checkSocketPath(path, address.path, wrong);
  }
  checkSocketPath(['admin', 'socket'], admin.socket ?? '', wrong);
  checkPage(admin.page, wrong);
  if (admin.metrics === undefined) return;
  const address = listenAddress(admin.metrics);
  if (address === undefined || 'path' in address || 'tls' in address) {
    wrong(['admin', 'metrics'], `address:port is expected, not "${admin.metrics}"`);
  }
}

function checkDecisions({ decisions, trustProxy, workers }: Config, wrong: Wrong): void {
  if (decisions === undefined) return;
  if (trustProxy.length === 0) wrong(['decisions'], 'only proxies of trustProxy may ask, and there are none');
  const envoy = listenAddress(decisions.envoy ?? '127.0.0.1:0');
  if (envoy === undefined || 'path' in envoy || 'tls' in envoy)
    wrong(['decisions', 'envoy'], `address:port is expected, not "${decisions.envoy}"`);
  if (decisions.listen === undefined) return;
  const path = ['decisions', 'listen'];
  const address = listenAddress(decisions.listen);
  if (address === undefined || 'tls' in address)
    wrong(path, `address:port or unix:/path is expected, not "${decisions.listen}"`);
  else if (workers > 1 && 'path' in address) wrong(path, 'several workers can share a port, but not a Unix socket');
  else if ('path' in address) checkSocketPath(path, address.path, wrong);
}

/** The page has no password: only clients on this machine may connect. */
function checkPage(page: string | undefined, wrong: Wrong): void {
  if (page === undefined) return;
  const address = listenAddress(page);
  if (address !== undefined && 'port' in address && address.tls === undefined && isLoopback(address.host)) return;
  wrong(['admin', 'page'], `127.0.0.1:port or [::1]:port is expected, not "${page}"`);
}

function checkRoutes(config: Config, wrong: Wrong): void {
  const { categories, exempt, routes, secondary, webContent, shadowRoutes } = config;
  const check = (path: Path, text: string, method: 'method' | 'path'): void => {
    const problem = templateProblem(text, method);
    if (problem !== undefined) wrong(path, problem);
  };
  for (const [name, { routes: own = [] }] of Object.entries(categories)) {
    for (const [index, route] of own.entries()) check(['categories', name, 'routes', index], route, 'method');
  }
  if (categories.core.routes !== undefined)
    wrong(['categories', 'core', 'routes'], 'core has every route that no other category has, so it takes none');
  for (const [index, route] of routes.entries()) check(['routes', index], route, 'path');
  for (const [index, route] of exempt.routes.entries()) check(['exempt', 'routes', index], route, 'method');
  for (const route of Object.keys(secondary.points)) check(['secondary', 'points', route], route, 'method');
  for (const [index, route] of webContent.entries()) {
    check(['webContent', index], route, 'method');
  }
  for (const [index, { route }] of shadowRoutes.entries()) check(['shadowRoutes', index, 'route'], route, 'method');
  for (const [index, { route }] of (secondary.content ?? []).entries()) {
    check(['secondary', 'content', index, 'route'], route, 'method');
  }
}

function checkIntrospection({ introspection }: Config, wrong: Wrong): void {
  if (introspection === undefined) return;
  if (!URL.canParse(introspection.url))
    wrong(['introspection', 'url'], `a URL is expected, not "${introspection.url}"`);
  const { authorizationFile: file } = introspection;
  const problem = file === undefined ? undefined : headerFileProblem(file);
  if (problem !== undefined) wrong(['introspection', 'authorizationFile'], problem);
}

function checkNetworks({ networks }: Config, wrong: Wrong): void {
  for (const [index, network] of networks.entries()) {
    try {
      const found = rangesOf(network).flatMap((range) => cidrProblem(range) ?? []);
      for (const problem of found.slice(0, MAX_WRONG_RANGES)) wrong(['networks', index], problem);
      const left = found.length - MAX_WRONG_RANGES;
      if (left > 0) wrong(['networks', index], `and ${left} more that are no addresses or ranges`);
    } catch (error) {
      wrong(['networks', index, 'file'], reasonOf(error));
    }
    const above = networks.findIndex(({ name }) => name === network.name);
    if (above < index) wrong(['networks', index, 'name'], 'another network has the same');
  }
}

function headerFileProblem(file: string): string | undefined {
  try {
    const value = readFile(file).trim();
    return /^[\x20-\x7e]+$/.test(value) ? undefined : `${file} does not hold one line, the value of a header`;
  } catch (error) {
    return reasonOf(error);
  }
}

function checkIdentities(identities: IdentitySettings, wrong: Wrong): void {
  const { users, orgs, apps, installations, repositories, tokens } = identities;
  const exists = (table: object, name: string, path: Path, id: string | undefined): void => {
    if (id !== undefined && !Object.hasOwn(table, id)) wrong(['identities', ...path], `there is no ${name} ${id}`);
  };
  for (const [id, user] of Object.entries(users)) {
    for (const [index, org] of user.orgs.entries()) exists(orgs, 'organization', ['users', id, 'orgs', index], org);
  }
  const clients = new Map<string, string>();
  for (const [id, app] of Object.entries(apps)) {
    exists(orgs, 'organization', ['apps', id, 'owner'], app.owner);
    for (const [index, org] of app.approvedBy.entries()) {
      exists(orgs, 'organization', ['apps', id, 'approvedBy', index], org);
    }
    if ((app.clientId === undefined) !== (app.clientSecretSha256 === undefined)) {
      wrong(['identities', 'apps', id], 'clientId and clientSecretSha256 belong together');
    }
    if (app.clientId === undefined) continue;
    const other = clients.get(app.clientId);
    if (other !== undefined) wrong(['identities', 'apps', id, 'clientId'], `app ${other} has the same`);
    clients.set(app.clientId, id);
  }
  for (const [id, installation] of Object.entries(installations)) {
    exists(orgs, 'organization', ['installations', id, 'org'], installation.org);
  }
  for (const [id, repository] of Object.entries(repositories)) {
    exists(orgs, 'organization', ['repositories', id, 'org'], repository.org);
  }
  const seen = new Set<string>();
  for (const [index, token] of tokens.entries()) {
    const path = ['tokens', index];
    exists(users, 'user', [...path, 'user'], token.user);
    exists(apps, 'app', [...path, 'app'], token.app);
    exists(installations, 'installation', [...path, 'installation'], token.installation);
    exists(repositories, 'repository', [...path, 'repository'], token.repository);
    const owners = [token.user, token.installation, token.repository].filter((owner) => owner !== undefined);
    if (owners.length !== 1)
      wrong(['identities', ...path], 'one owner of the token is expected: user, installation or repository');
    if (token.app !== undefined && token.user === undefined)
      wrong(['identities', ...path, 'app'], 'an app acts for a user, and there is no user');
    const hash = token.sha256.toLowerCase();
    if (seen.has(hash)) wrong(['identities', ...path, 'sha256'], 'the same token stands above');
    seen.add(hash);
  }
}
