import { type Counts, RESPONSE_SECONDS } from '../metrics.ts';
import type { NearestCaller } from './nearest-callers.ts';

type Labels = Readonly<Record<string, string>>;
type Sample = readonly [labels: Labels, value: number];

const PREFIX = 'gantry_gateway';

/** The counts in the text format of Prometheus. */
export function prometheusText(counts: Counts, nearest: readonly NearestCaller[] = []): string {
  const { limiter } = counts;
  return [
    metric('responses_total', 'counter', 'Answers sent to clients.', [
      ...byClass(counts.upstreamAnswers, 'upstream'),
      ...byClass(counts.ownAnswers, 'gateway'),
    ]),
    metric('requests_admitted_total', 'counter', 'Requests that no limit refused.', [[{}, limiter.admitted]]),
    metric('requests_refused_total', 'counter', 'Requests refused, by limit.', [
      ...by('limit', limiter.refused),
      [{ limit: 'ban' }, limiter.banned],
      [{ limit: 'store-unavailable' }, limiter.unavailable],
    ]),
    metric(
      'requests_shadowed_total',
      'counter',
      'Requests that a limit in shadow mode would have refused.',
      by('limit', limiter.shadowed),
    ),
    metric('requests_unauthenticated_total', 'counter', 'Requests with a credential that nobody knows.', [
      [{}, counts.unauthenticated],
    ]),
    metric('requests_unreadable_total', 'counter', 'Requests that cannot be read.', [[{}, counts.unreadable]]),
    metric('clients_gone_total', 'counter', 'Clients that left before their answer was complete.', [
      [{}, counts.clientsGone],
    ]),
    metric('slow_clients_total', 'counter', 'Transfers ended because their clients were slow while others waited.', [
      [{}, counts.slowClients],
    ]),
    metric('upstream_failures_total', 'counter', 'Requests that the upstream failed.', [
      ...by('kind', counts.upstreamFailures),
    ]),
    metric('store_failures_total', 'counter', 'Decisions for which the store did not answer.', [
      [{}, counts.storeFailures],
    ]),
    metric('identity_failures_total', 'counter', 'Credentials about which the identity source said nothing.', [
      [{}, counts.identityFailures],
    ]),
    metric('upgrades_total', 'counter', 'Connections that have switched to another protocol.', [[{}, counts.upgrades]]),
    metric(
      'connections_rejected_total',
      'counter',
      'Connections beyond sizes.connections, or a quarter of them from one address.',
      [[{}, counts.rejectedConnections]],
    ),
    metric('connections_open', 'gauge', 'Open connections of clients.', [[{}, counts.openConnections]]),
    metric('requests_under_way', 'gauge', 'Requests without a complete answer.', [[{}, counts.underWay]]),
    metric(
      'caller_used_ratio',
      'gauge',
      'Used share of a primary limit, of the callers of this gateway that are nearest to theirs.',
      nearest.map(({ key, resource, ratio }): Sample => [{ caller: key, resource }, ratio]),
    ),
    histogram(
      'upstream_response_seconds',
      'Time from the dispatch of a request to the upstream until its answer has ended.',
      counts,
    ),
    '',
  ].join('\n');
}

function metric(name: string, type: 'counter' | 'gauge', help: string, samples: readonly Sample[]): string {
  const lines = samples.map(([labels, value]) => `${PREFIX}_${name}${labelText(labels)} ${value}`);
  return [`# HELP ${PREFIX}_${name} ${help}`, `# TYPE ${PREFIX}_${name} ${type}`, ...lines].join('\n');
}

function histogram(name: string, help: string, { responseSeconds, responseSecondsSum }: Counts): string {
  let sum = 0;
  const buckets = responseSeconds.map((count, index) => {
    sum += count;
    const le = RESPONSE_SECONDS[index];
    return `${PREFIX}_${name}_bucket${labelText({ le: le === undefined ? '+Inf' : String(le) })} ${sum}`;
  });
  return [
    `# HELP ${PREFIX}_${name} ${help}`,
    `# TYPE ${PREFIX}_${name} histogram`,
    ...buckets,
    `${PREFIX}_${name}_sum ${responseSecondsSum}`,
    `${PREFIX}_${name}_count ${sum}`,
  ].join('\n');
}

function by(label: string, values: Readonly<Record<string, number>>): Sample[] {
  return Object.entries(values).map(([name, value]): Sample => [{ [label]: name }, value]);
}

function byClass(values: Readonly<Record<string, number>>, from: string): Sample[] {
  return Object.entries(values).map(([status, value]): Sample => [{ from, status }, value]);
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${value.replaceAll(/[\\"\n]/g, escapeOf)}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

/** An id may hold any character. */
function escapeOf(character: string): string {
  return character === '\n' ? String.raw`\n` : `\\${character}`;
}
