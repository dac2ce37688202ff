import { EngineError } from '../../lib/errors.ts';
import { endpointOf } from '../state/defaults.ts';
import type { ServiceRecord } from '../state/records.ts';
import type { EndpointPort, EndpointSpec, ServiceSpec } from '../state/service-spec.ts';
import type { View } from '../state/view.ts';

const FIRST_PORT = 30_000;
const LAST_PORT = 32_767;

/** Whether ports lead from the ingress network to the tasks. */
export function publishes(of: { endpoint?: EndpointSpec }): boolean {
  const { mode, ports } = endpointOf(of);
  return mode === 'vip' && ports.some((port) => port.mode !== 'host');
}

/** The ports that services have published on all nodes. */
export class PublishedPorts {
  readonly #owners = new Map<string, string>();
  /** The services whose tasks publish a port on their nodes; several may have the same. */
  readonly #onTheirNodes = new Map<string, Set<string>>();

  constructor(view: View) {
    for (const { id, endpoint, spec } of view.all('service')) {
      for (const port of [...endpoint.ports, ...endpointOf(spec).ports]) {
        if (port.publishedPort === 0) continue;
        if (port.mode !== 'host') this.#owners.set(keyOf(port), id);
        else this.#onTheirNodes.set(keyOf(port), new Set([...(this.#onTheirNodes.get(keyOf(port)) ?? []), id]));
      }
    }
  }

  /** Another service in whose way a port would be. */
  inTheWayOf(port: EndpointPort, own: string | undefined): { owner: string; as: string } | undefined {
    const owner = this.#owners.get(keyOf(port));
    if (owner !== undefined && owner !== own) return { owner, as: 'an ingress port' };
    if (port.mode === 'host') return undefined;
    const other = [...(this.#onTheirNodes.get(keyOf(port)) ?? [])].find((id) => id !== own);
    return other === undefined ? undefined : { owner: other, as: 'a host-published port' };
  }

  /** The lowest free port that no service asks for by number. */
  choose(protocol: EndpointPort['protocol'], service: string): number {
    for (let publishedPort = FIRST_PORT; publishedPort <= LAST_PORT; publishedPort += 1) {
      const key = keyOf({ protocol, publishedPort });
      if (this.#owners.has(key) || this.#onTheirNodes.has(key)) continue;
      this.#owners.set(key, service);
      return publishedPort;
    }
    throw new EngineError('failed', `all ports from ${FIRST_PORT} to ${LAST_PORT} of ${protocol} are published`);
  }
}

/** The ports of a service's specification with their numbers; ports that it has stay as they are. */
export function endpointPorts({ id, spec, endpoint }: ServiceRecord, ports: PublishedPorts): EndpointPort[] {
  const had = [...endpoint.ports];
  const wanted = endpointOf(spec).ports;
  return wanted.map((port) => {
    if (port.publishedPort !== 0 || port.mode === 'host') return port;
    const at = had.findIndex(
      (other) =>
        other.mode === port.mode &&
        other.protocol === port.protocol &&
        other.targetPort === port.targetPort &&
        !wanted.some(
          ({ protocol, publishedPort }) => protocol === other.protocol && publishedPort === other.publishedPort,
        ),
    );
    const [same] = at === -1 ? [] : had.splice(at, 1);
    return { ...port, publishedPort: same?.publishedPort ?? ports.choose(port.protocol, id) };
  });
}

/** Throws where another service has published a port of a specification. */
export function refuseTakenPorts(view: View, spec: ServiceSpec, own: string | undefined): void {
  const ports = new PublishedPorts(view);
  for (const port of endpointOf(spec).ports) {
    const other = port.publishedPort === 0 ? undefined : ports.inTheWayOf(port, own);
    if (other === undefined) continue;
    const { owner, as } = other;
    const name = view.get('service', owner)?.spec.name ?? '';
    throw new EngineError(
      'invalid',
      `rpc error: code = InvalidArgument desc = port '${port.publishedPort}' is already in use by service '${name}' (${owner}) as ${as}`,
    );
  }
}

function keyOf({ protocol, publishedPort }: Pick<EndpointPort, 'protocol' | 'publishedPort'>): string {
  return `${publishedPort}/${protocol}`;
}
