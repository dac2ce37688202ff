import { isIP } from 'node:net';

import { EngineError } from '../lib/errors.ts';
import { MAX_SETTINGS_ENTRIES, refuseAbove } from './limits.ts';

/** `80`, `53/udp`, `8000-8010/tcp`; a host address and port in front are checked and ignored. */
export function exposedPorts(specs: readonly string[]): string[] {
  let count = 0;
  return specs.flatMap((spec) => {
    const { first, last, protocol } = portsOf(spec);
    count += last - first + 1;
    refuseAbove(MAX_SETTINGS_ENTRIES, count, 'EXPOSE', 'ports');
    return Array.from({ length: last - first + 1 }, (_, index) => `${first + index}/${protocol}`);
  });
}

function portsOf(spec: string): { first: number; last: number; protocol: string } {
  const { ip, hostPort, rest } = partsOf(spec);
  const slash = rest.indexOf('/');
  const ports = slash < 0 ? rest : rest.slice(0, slash);
  const protocol = (slash < 0 ? '' : rest.slice(slash + 1)) || 'tcp';
  if (ip !== '' && isIP(ip) === 0) throw invalid(`Invalid ip address: ${ip}`);
  if (ports === '') throw invalid(`No port specified: ${spec}<empty>`);
  const range = rangeOf(ports);
  if (range === undefined) throw invalid(`Invalid containerPort: ${ports}`);
  const hostRange = hostPort === '' ? range : rangeOf(hostPort);
  if (hostRange === undefined) throw invalid(`Invalid hostPort: ${hostPort}`);
  const [first, last] = range;
  if (first !== last && hostRange[1] - hostRange[0] !== last - first) {
    throw invalid(`Invalid ranges specified for container and host Ports: ${ports} and ${hostPort}`);
  }
  if (!['tcp', 'udp', 'sctp'].includes(protocol.toLowerCase())) throw invalid(`Invalid proto: ${protocol}`);
  return { first, last, protocol: protocol.toLowerCase() };
}

function partsOf(spec: string): { ip: string; hostPort: string; rest: string } {
  const parts = spec.split(':');
  const rest = parts.at(-1)!;
  const hostPort = parts.length > 1 ? parts.at(-2)! : '';
  return {
    ip: parts
      .slice(0, -2)
      .join(':')
      .replace(/^\[(.*)\]$/, '$1'),
    hostPort,
    rest,
  };
}

function rangeOf(text: string): [number, number] | undefined {
  const [, first, last] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(text) ?? [];
  const [from, to] = [Number(first), Number(last ?? first)];
  return from <= to && to <= 65_535 ? [from, to] : undefined;
}

function invalid(message: string): EngineError {
  return new EngineError('invalid', message);
}
