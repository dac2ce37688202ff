import type { Dns } from '../dns/dns.ts';
import type { NetworkRecord } from '../store.ts';
import { servicesIn, type Member, type ServiceMember } from './members.ts';

/** The names of services and tasks in overlays, as the resolver has them. */
export class OverlayNames {
  readonly #dns: () => Dns;
  /** Its lines, by network and owner. */
  readonly #told = new Map<string, ReadonlyMap<string, string>>();

  constructor(dns: () => Dns) {
    this.#dns = dns;
  }

  /** The lines for a resolver that knows nothing yet. */
  all(networks: readonly NetworkRecord[], members: (id: string) => readonly Member[]): string[] {
    this.#told.clear();
    return networks.flatMap((network) => {
      const lines = nameLines(network.id, members(network.id));
      this.#told.set(network.id, lines);
      return [netLine(network), ...lines.values()];
    });
  }

  /** Tells the resolver what has changed. One that is away gets everything when it is back. */
  tell(network: NetworkRecord, members: readonly Member[]): void {
    const { id } = network;
    const before = this.#told.get(id) ?? new Map<string, string>();
    const now = nameLines(id, members);
    this.#told.set(id, now);
    const changed = [...now].filter(([owner, line]) => before.get(owner) !== line).map(([, line]) => line);
    const gone = [...before.keys()].filter((owner) => !now.has(owner)).map((owner) => `unname ${id} ${owner}`);
    if (changed.length + gone.length > 0) this.#dns().tell([netLine(network), ...gone, ...changed]);
  }

  /** A network ends here. */
  forget(id: string): void {
    const told = [...(this.#told.get(id)?.keys() ?? [])];
    this.#told.delete(id);
    this.#dns().tell(told.map((owner) => `unname ${id} ${owner}`));
  }
}

function netLine({ id, name }: NetworkRecord): string {
  return `net ${id} ${name.replaceAll(/\s/g, '_').toLowerCase()}`;
}

/**
 * The resolver's lines for a network, by who has the names: services by their name and aliases, tasks by the name of their
 * container and, where they serve, as `tasks.<service>`, containers of no service by theirs and their aliases. Without a
 * virtual address the service's names lead to its tasks.
 */
function nameLines(network: string, members: readonly Member[]): Map<string, string> {
  const lines = new Map<string, string>();
  const services = new Map(servicesIn(members).map((service) => [service.id, service]));
  for (const member of members) {
    const [ip, names] = namesOf(member, services);
    if (names.length > 0) lines.set(member.id, `name ${network} ${member.id} ${ip} - ${names.join(' ')}`);
  }
  return lines;
}

function namesOf(member: Member, services: ReadonlyMap<string, ServiceMember>): [ip: string, names: string[]] {
  switch (member.kind) {
    case 'node':
      return [member.ip, []];
    case 'container':
      return [member.ip, [member.name, ...member.aliases]];
    case 'service':
      return member.vip === undefined ? ['', []] : [member.vip, [member.name, ...member.aliases]];
    case 'task': {
      const service = member.serves ? services.get(member.service) : undefined;
      const names = service === undefined ? [] : [service.name, ...service.aliases];
      const own = service?.vip === undefined ? names : [];
      return [member.ip, [member.name, ...names.map((name) => `tasks.${name}`), ...own]];
    }
  }
}
