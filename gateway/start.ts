import type { LimitStore } from '@gantry/limiter/limit-store.ts';
import { RateLimiter } from '@gantry/limiter/limiter.ts';
import { ForeignValue } from '@gantry/limiter/redis/wire.ts';
import type { RefusalNote } from '@gantry/limiter/types.ts';

import { NearestCallers } from './admin/nearest-callers.ts';
import { TopCallers } from './admin/top-callers.ts';
import { overriddenRules, rulesFrom } from './config/rules.ts';
import type { Config } from './config/schema.ts';
import { OpenDecisions } from './decisions/open-decisions.ts';
import { createDecisionServer } from './decisions/server.ts';
import { keepGarbageYoung } from './garbage.ts';
import type { DecisionEnd, Gateway } from './gateway.ts';
import type { GatewayLog } from './log.ts';
import { newCounts } from './metrics.ts';
import type { Service } from './operator.ts';
import { buildPolicy } from './policy.ts';
import { HeldBytes } from './proxy/bodies/held-body.ts';
import { ConnectionsByAddress } from './proxy/connections/connections-by-address.ts';
import { Listeners } from './proxy/connections/listeners.ts';
import { LearnedOrigins } from './proxy/headers/cors.ts';
import { sameUpstream, Upstream } from './proxy/upstream.ts';

/** A gateway in this process. */
export type LocalService = Service & {
  /** Records a refusal of another process. */
  noteRefusal(note: RefusalNote): void;
  /** Ends a request of a proxy, if this process has decided about it. */
  endDecision(end: DecisionEnd): void;
};

/** The other processes of a gateway. */
export type OtherWorkers = Readonly<{
  /** They must know of a refusal where a ban is configured. */
  refused(note: RefusalNote): void;
  /** One of them may have decided about this request. */
  ended(end: DecisionEnd): void;
}>;

/** Builds the parts of a gateway in this process and opens the listeners. It disposes the store at its end. */
export async function startGateway(
  config: Config,
  log: GatewayLog,
  store: LimitStore,
  others?: OtherWorkers,
): Promise<LocalService> {
  keepGarbageYoung();
  await using undo = new AsyncDisposableStack();
  const limiter = undo.use(
    new RateLimiter({
      store,
      rules: rulesFrom(config),
      overrides: overriddenRules(config),
      onStoreFailure: config.store.onFailure,
      reportFailure: (error) => {
        gateway.counts.storeFailures += 1;
        if (error instanceof ForeignValue) log.failure('store', error);
        else log.storeAway(error);
      },
      reportShadow: (limit, caller, endpoint) => log.shadow(limit, caller, endpoint),
      ...(others === undefined ? {} : { reportRefusal: (note) => others.refused(note) }),
    }),
  );
  const gateway: Gateway = {
    limiter,
    counts: newCounts(limiter.counts),
    log,
    connections: new Map(),
    handshakes: new Set(),
    addresses: new ConnectionsByAddress(),
    policy: buildPolicy(config, limiter),
    upstream: new Upstream(config),
    draining: false,
    origins: new LearnedOrigins(),
    heldBytes: new HeldBytes(),
    graphqlBytes: new HeldBytes(),
    openDecisions: undo.use(new OpenDecisions()),
    endElsewhere: others?.ended,
    pipelined: 0,
    topCallers: undo.use(new TopCallers()),
    nearestCallers: new NearestCallers(),
  };
  undo.defer(async () => await gateway.upstream[Symbol.asyncDispose]());
  undo.defer(async () => await gateway.policy.introspection?.close());
  const listeners = undo.use(await Listeners.open(gateway, config, () => createDecisionServer(gateway)));
  undo.defer(async () => await listeners.drain(gateway.policy.config.timeouts.drainMs));
  if (config.decisions?.envoy !== undefined) {
    const { openRateLimitService } = await import('./decisions/envoy/open.ts');
    undo.use(await openRateLimitService(gateway, config.decisions.envoy, config.workers));
  }
  if (listeners.decisions !== undefined) log.logger.info({ address: listeners.decisions }, 'proxies are answered');
  const parts = undo.move();
  return {
    addresses: listeners.addresses,
    operator: {
      limited: async () => limiter.explain(),
      caller: async (key) => await limiter.explainCaller(key),
      limitsOf: async (key) => [
        ...gateway.policy.known.limitsOf(key),
        ...(gateway.policy.introspection?.limitsOf(key) ?? []),
      ],
      content: async (key, count) => await store.chargeContent(key, count, limiter.rules),
      forgive: async (key) => {
        await limiter.forgive(key);
        gateway.nearestCallers.forget(key);
      },
      counts: async () => gateway.counts,
      top: async () => gateway.topCallers.list(),
      nearest: async () => gateway.nearestCallers.list(),
    },
    noteRefusal: (note) => limiter.noteRefusal(note),
    endDecision: ({ token, seconds }) => void gateway.openDecisions.end(token, seconds),
    reload: async (next) => reload(gateway, listeners, next),
    [Symbol.asyncDispose]: async () => await parts.disposeAsync(),
  };
}

function reload(gateway: Gateway, listeners: Listeners, next: Config): void {
  const { limiter, policy: before, upstream, log } = gateway;
  const policy = buildPolicy(next, limiter, before);
  limiter.changeRules(rulesFrom(next), overriddenRules(next));
  gateway.policy = policy;
  listeners.changeTimeouts(next);
  log.change(next.log);
  if (before.introspection !== undefined && before.introspection !== policy.introspection) {
    before.introspection.close().catch((error: unknown) => log.bug(error));
  }
  if (sameUpstream(before.config, next)) return;
  gateway.upstream = new Upstream(next);
  // Requests under way end on the old connections.
  upstream.close().catch((error: unknown) => log.bug(error));
}
