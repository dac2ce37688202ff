/** Settings of earlier versions and their fixed values: a file that still names one is refused with the value. */
export const REMOVED: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'identities.installations.ID.app': 'it had no effect',
    'identities.installations.ID.user': 'it had no effect',
    'identities.repositories.ID.user': 'it had no effect',
    'refusal.shadowHeader': 'it is false; the log and the metrics name limits in shadow mode',
    'limits.userThroughEnterpriseApp': 'it is 15000',
    'limits.installation': 'it is 5000 and more with the size of the installation; use overrides for a single one',
    'limits.oauthClient': 'it is 5000; use overrides for a single app',
    'limits.oauthClientOfEnterprise': 'it is 15000; use overrides for a single app',
    'limits.workflow': 'it is 1000; use overrides for a single repository',
    'limits.workflowOfEnterprise': 'it is 15000; use overrides for a single repository',
    'limits.ipv6PrefixBits': 'it is 64',
    'secondary.concurrent.retrySeconds': 'it is 1',
    'secondary.restPoints.window': 'secondary.window is for all of them',
    'secondary.graphqlPoints.window': 'secondary.window is for all of them',
    'secondary.cpu.window': 'secondary.window is for all of them',
    'secondary.contentPerMinute.window': 'secondary.window is for all of them',
    'secondary.contentPerHour.window': 'secondary.window is for all of them',
    'secondary.readPoints': 'it is 1; use secondary.points for a single endpoint',
    'secondary.writePoints': 'it is 5; use secondary.points for a single endpoint',
    'secondary.queryPoints': 'it is 1',
    'secondary.mutationPoints': 'it is 5',
    'secondary.unreadOperations': 'it is 10',
    'timeouts.headersMs': 'it is 15000',
    'timeouts.upgradedIdleMs': 'it is 0',
    'timeouts.connectMs': 'it is 5000',
    'sizes.headerBytes': 'it is 32768',
    'sizes.graphqlScanBytes': 'it is 65536',
    'introspection.unknownSeconds': 'it is 10, or cacheSeconds where that is less',
    'introspection.cacheEntries': 'it is 10000',
    'introspection.concurrency': 'it is 32',
    'introspection.perAddress': 'it is 4',
    'introspection.slowPerSecond': 'it is 10',
    'introspection.waitMs': 'it is 10000',
    graphqlPaths: 'GraphQL is served at /graphql and /api/graphql',
    pathParameters: 'a path with a parameter that could change its meaning is refused',
    overrideHeaders: 'headers that give another method or path are dropped',
    'apiVersions.headers': 'it is X-Platform-Api-Version or X-GitHub-Api-Version',
    'refusal.documentationUrl': 'it is /rate_limit',
    'store.flushMs': 'it is 200',
    'timeouts.keepAliveMs': 'it is 65000',
    'timeouts.upstreamBodyMs': 'timeouts.upstreamHeadersMs is for the whole answer',
    'sizes.connectionsPerAddress': 'it is a quarter of sizes.connections, at least 32',
    'ban.withinSeconds': 'it is 60',
    'secondary.contentPerHour.windowSeconds': 'it is 3600',
  }),
);

/** Names the fixed value of a setting that is gone; undefined: there never was one. */
export function removedMessage(path: readonly (string | number)[]): string | undefined {
  const value =
    REMOVED.get(path.join('.')) ?? REMOVED.get(path.map((step, index) => (index === 2 ? 'ID' : step)).join('.'));
  return value === undefined ? undefined : `is no setting any more: ${value}`;
}
