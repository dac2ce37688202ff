import { forgetNamesCommand, namesCommand, networkCommand, type Command } from '../../dns/commands.ts';
import type { Dns } from '../../dns/dns.ts';
import type { NetworkRecord } from '../../store.ts';
import { servicesIn, type Member, type ServiceMember } from './members.ts';

/** The names of services and tasks in overlays, as the resolver has them. */
export class OverlayNames {
  readonly #dns: () => Dns;
  /** The commands that it got, by network and owner. */
  readonly #told = new Map<string, ReadonlyMap<string, Command>>();

  constructor(dns: () => Dns) {
    this.#dns = dns;
  }

  /** The commands for a resolver that knows nothing yet. */
  all(networks: readonly NetworkRecord[], members: (id: string) => readonly Member[]): Command[] {
    this.#told.clear();
    return networks.flatMap(({ id, name }) => {
      const commands = memberCommands(id, members(id));
      this.#told.set(id, commands);
      return [networkCommand(id, name), ...commands.values()];
    });
  }

  /** Tells the resolver of changes. One that is away gets everything when it is back. */
  tell({ id, name }: NetworkRecord, members: readonly Member[]): void {
    const before = this.#told.get(id) ?? new Map<string, Command>();
    const now = memberCommands(id, members);
    this.#told.set(id, now);
    const changed = [...now].filter(([owner, { line }]) => before.get(owner)?.line !== line).map(([, one]) => one);
    const gone = [...before.keys()].filter((owner) => !now.has(owner)).map((owner) => forgetNamesCommand(id, owner));
    if (changed.length + gone.length > 0) this.#dns().tell([networkCommand(id, name), ...gone, ...changed]);
  }

  /** A network ends here. */
  forget(id: string): void {
    const told = [...(this.#told.get(id)?.keys() ?? [])];
    this.#told.delete(id);
    this.#dns().tell(told.map((owner) => forgetNamesCommand(id, owner)));
  }
}

/**
 * The commands for a network, by the owner of the names: services by their name and aliases, tasks by the name of their
 * container and, where they serve, as `tasks.<service>`, containers of no service by theirs and their aliases. Without a
 * virtual address the service's names lead to its tasks.
 */
function memberCommands(network: string, members: readonly Member[]): Map<string, Command> {
  const commands = new Map<string, Command>();
  const services = new Map(servicesIn(members).map((service) => [service.id, service]));
  for (const member of members) {
    const [ip, names] = namesOf(member, services);
    if (names.length > 0) commands.set(member.id, namesCommand(network, member.id, { ip, ip6: '', names }));
  }
  return commands;
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
