import { createHash } from 'node:crypto';

import { SystemError } from '../../../host/libc.ts';
import { withNetns } from '../../../host/namespaces.ts';
import { forgetUdpFlows, type FlowChoice } from '../../../host/network/conntrack.ts';
import { Netlink } from '../../../host/network/netlink.ts';
import { Nftables } from '../../../host/network/nftables.ts';
import { append } from '../../../lib/append.ts';
import { servicesIn, servingIn, type Member } from '../members/members.ts';

const TABLE = 'ip gantry-services';
/** A sandbox knows no more tasks of a service: its own choice of them, which stays. */
const MAX_BACKENDS = 128;

/**
 * The choice of a task for a new connection, at random: one rule of a chain, whose name is what leads to it. Without tasks
 * the chain is empty.
 */
type Balance = Readonly<{
  /** An element of the map `balanced`: of virtual addresses, or of published ports. */
  key: string;
  chain: string;
  /** Empty without tasks. */
  rule: string;
  /** The addresses in it. */
  tasks: readonly string[];
  /** Flows of UDP that it leads; undefined for a port of TCP. */
  udp?: FlowChoice;
  /** The port of the tasks; undefined where it is that of the client's packets. */
  target?: number;
}>;

/** In the namespace of a container: from the virtual addresses of services to their tasks. */
export function virtualAddresses(members: Iterable<Member>, seed: string): Balance[] {
  const all = [...members];
  const serving = servingIn(all);
  return servicesIn(all).flatMap(({ id, vip }) => {
    if (vip === undefined) return [];
    const tasks = subset(
      (serving.get(id) ?? []).map(({ ip }) => ip),
      seed,
    );
    const rule = tasks.length === 0 ? '' : `dnat to ${choice(tasks)}`;
    return { key: vip, chain: `to-${vip}`, rule, tasks, udp: { ip: vip } };
  });
}

/** In the namespace of the ingress sandbox: from published ports to the tasks. */
export function publishedPorts(members: Iterable<Member>, seed: string): Balance[] {
  const all = [...members];
  const serving = servingIn(all);
  return servicesIn(all).flatMap(({ id, ports }) => {
    const tasks = subset(
      (serving.get(id) ?? []).map(({ ip }) => ip),
      seed,
    );
    return ports.map(({ protocol, published, target }) => ({
      key: `${protocol} . ${published}`,
      chain: `to-${protocol}-${published}`,
      rule:
        tasks.length === 0 ? '' : `meta l4proto ${protocol} dnat to ${choice(tasks.map((ip) => `${ip} . ${target}`))}`,
      ...{ tasks, target },
      ...(protocol === 'udp' && { udp: { port: published } }),
    }));
  });
}

function choice(targets: readonly string[]): string {
  if (targets.length === 1) return targets[0]!.replace(' . ', ':');
  return `numgen random mod ${targets.length} map { ${targets.map((to, at) => `${at} : ${to}`).join(', ')} }`;
}

/** The first ones in an order that depends on the sandbox: others have others, and a change of one changes one. */
function subset(ips: readonly string[], seed: string): readonly string[] {
  if (ips.length <= MAX_BACKENDS) return ips;
  const place = (ip: string): string => createHash('sha1').update(`${seed} ${ip}`).digest('hex');
  return ips
    .map((ip) => [place(ip), ip] as const)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .slice(0, MAX_BACKENDS)
    .map(([, ip]) => ip);
}

type Kind = 'container' | 'ingress';

/** The rules of one namespace that lead to tasks, written as a whole at first and then by what has changed. */
export class Balancing {
  readonly #kind: Kind;
  #written: ReadonlyMap<string, Balance> | undefined;

  constructor(kind: Kind) {
    this.#kind = kind;
  }

  /** `netns`: an open descriptor. Nothing happens where nothing has changed. */
  write(netns: number, balances: readonly Balance[]): void {
    const wanted = new Map(balances.map((balance) => [balance.key, balance]));
    const before = this.#written;
    const commands = before === undefined ? tableText(this.#kind, balances) : changeText(this.#kind, before, wanted);
    if (commands === '') return;
    this.#written = undefined;
    withNetns(netns, () => {
      using nft = new Nftables();
      nft.run(commands);
      if (before !== undefined) forgetFlows([...findLostFlows(before, wanted), ...findEarlyFlows(before, wanted)]);
    });
    this.#written = wanted;
  }
}

/** The flows to tasks that nothing leads to any more. */
function findLostFlows(before: ReadonlyMap<string, Balance>, wanted: ReadonlyMap<string, Balance>): FlowChoice[] {
  const known = new Set([...before.values()].flatMap(({ tasks }) => tasks));
  const left = known.difference(new Set([...wanted.values()].flatMap(({ tasks }) => tasks)));
  return [...left].map((target) => ({ target }));
}

/** The flows that began while there was no task to lead them to, or another port of the tasks. */
function findEarlyFlows(before: ReadonlyMap<string, Balance>, wanted: ReadonlyMap<string, Balance>): FlowChoice[] {
  return [...wanted.values()].flatMap(({ key, rule, target, udp }) => {
    const old = before.get(key);
    const isNew = rule !== '' && (old === undefined || old.rule === '' || old.target !== target);
    return isNew && udp !== undefined ? [udp] : [];
  });
}

/** A client of UDP that keeps sending would stay with a task that is gone, or with none. */
function forgetFlows(choices: readonly FlowChoice[]): void {
  if (choices.length === 0) return;
  using netfilter = new Netlink('netfilter');
  try {
    for (const choice of choices) forgetUdpFlows(netfilter, choice);
  } catch (error) {
    // A kernel that lists no flows: a client that never pauses waits until its flow times out.
    if (!(error instanceof SystemError)) throw error;
  }
}

/**
 * - `out`: what a container sends to a virtual address; `in`: what comes to the ingress sandbox for a published port.
 * - A service without tasks refuses at once, instead of letting its clients wait for an answer.
 */
function tableText(kind: Kind, balances: readonly Balance[]): string {
  const hooks =
    kind === 'container'
      ? `chain out { type nat hook output priority -100; policy accept; ip daddr vmap @balanced; }
  chain refuse { type filter hook output priority 0; policy accept; ip daddr @idle reject with icmp type host-unreachable; }`
      : `chain in { type nat hook prerouting priority dstnat; policy accept; meta l4proto . th dport vmap @balanced; }
  chain leave { type nat hook postrouting priority srcnat; policy accept; ct status dnat masquerade; }`;
  return `
add table ${TABLE}
delete table ${TABLE}
table ${TABLE} {
  map balanced { type ${KEY_TYPE[kind]} : verdict; }
  set idle { type ${KEY_TYPE[kind]}; }
  ${hooks}
}
${balances.flatMap((balance) => additions(balance)).join('\n')}
`;
}

const KEY_TYPE: Readonly<Record<Kind, string>> = {
  container: 'ipv4_addr',
  ingress: 'inet_proto . inet_service',
};

function changeText(_kind: Kind, before: ReadonlyMap<string, Balance>, wanted: ReadonlyMap<string, Balance>): string {
  const lines: string[] = [];
  for (const [key, old] of before) {
    const now = wanted.get(key);
    if (now === undefined) append(lines, removals(old));
    else if (now.rule !== old.rule) append(lines, replacements(old, now));
  }
  for (const [key, balance] of wanted) if (!before.has(key)) append(lines, additions(balance));
  return lines.join('\n');
}

function additions({ key, chain, rule }: Balance): string[] {
  return [
    `add chain ${TABLE} ${chain}`,
    ...(rule === '' ? [`add element ${TABLE} idle { ${key} }`] : [`add rule ${TABLE} ${chain} ${rule}`]),
    `add element ${TABLE} balanced { ${key} : goto ${chain} }`,
  ];
}

function replacements(old: Balance, { key, chain, rule }: Balance): string[] {
  return [
    `flush chain ${TABLE} ${chain}`,
    ...(rule === '' ? [`add element ${TABLE} idle { ${key} }`] : [`add rule ${TABLE} ${chain} ${rule}`]),
    ...(old.rule === '' ? [`delete element ${TABLE} idle { ${key} }`] : []),
  ];
}

function removals({ key, chain, rule }: Balance): string[] {
  return [
    `delete element ${TABLE} balanced { ${key} : goto ${chain} }`,
    ...(rule === '' ? [`delete element ${TABLE} idle { ${key} }`] : []),
    `flush chain ${TABLE} ${chain}`,
    `delete chain ${TABLE} ${chain}`,
  ];
}
