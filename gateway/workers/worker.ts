/** A worker process: it serves requests, and the primary process tells it everything else. */
import type { RefusalNote } from '@gantry/limiter/types.ts';

import type { Config } from '../config/schema.ts';
import type { DecisionEnd } from '../gateway.ts';
import { GatewayLog } from '../log.ts';
import { type LocalService, startGateway } from '../start.ts';
import { openStore } from '../store.ts';
import { Channel, type Port } from './channel.ts';
import { SharedStore } from './shared-store.ts';

// A terminal or a service manager sends them to every process; the primary process decides when this one ends.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined);

let running: LocalService | undefined;

const channel: Channel = new Channel(process as Port, {
  start: async (config: Config) => {
    const log = new GatewayLog(config.log);
    const store = config.store.kind === 'redis' ? await openStore(config, log) : shared;
    running = await startGateway(config, log, store, {
      refused: (note) => channel.notify('refused', note),
      ended: (end) => channel.notify('ended', end),
    });
    return running.addresses;
  },
  ping: () => undefined,
  verdicts: (numbers: readonly number[]) => shared.answered(numbers),
  refused: (note: RefusalNote) => running?.noteRefusal(note),
  ended: (end: DecisionEnd) => running?.endDecision(end),
  reload: async (config: Config) => await running?.reload(config),
  limited: async () => await running?.operator.limited(),
  caller: async (key: string) => await running?.operator.caller(key),
  limitsOf: async (key: string) => await running?.operator.limitsOf(key),
  content: async ({ key, count }: { key: string; count: number }) => await running?.operator.content(key, count),
  forgive: async (key: string) => await running?.operator.forgive(key),
  top: async () => await running?.operator.top(),
  nearest: async () => await running?.operator.nearest(),
  counts: async () => await running?.operator.counts(),
  drain: async () => await running?.[Symbol.asyncDispose](),
});
const shared = new SharedStore(channel);
