import { randomBytes } from 'node:crypto';
import { closeSync } from 'node:fs';

import { withNetns } from '../../host/namespaces.ts';
import { disableIPv6, ignoreRouters } from '../../host/network/link-settings.ts';
import { changeLink, createVeth, getLink } from '../../host/network/links.ts';
import { Netlink } from '../../host/network/netlink.ts';
import { newContainerNetns } from '../../host/users/mapped-netns.ts';
import type { Background } from '../../lib/concurrency/background.ts';
import { EngineError, hasCode } from '../../lib/errors.ts';
import { addDnsRules } from '../dns/rules.ts';
import { LOOPBACK, prepareNetns } from '../endpoints/namespace.ts';

/** The usual stock; grows while starts come faster than new sandboxes are made. */
const MINIMUM_READY = 4;
const MAXIMUM_READY = 32;
/** The pause after a start, while shim and runtime are being spawned. */
const REFILL_AFTER_MS = 5;
/** A stock of one bridge begins with the daemon, whose start it would hold up. */
const FIRST_AFTER_MS = 500;
const SHRINK_AFTER_MS = 60_000;

/** A network namespace with `eth0`, whose other end is a port of the bridge; loopback is up, addresses are not set. */
export type Sandbox = Readonly<{
  netns: number;
  /** A netlink socket inside the namespace. */
  inside: Netlink;
  /** Index of `eth0` inside. */
  eth0: number;
  /** The other end. */
  port: Readonly<{ index: number; name: string }>;
}>;

/** `bridge`: undefined for a stock that serves several; leaving a bridge is slow, joining one is not. */
type BridgePort = Readonly<{ route: Netlink; bridge: number | undefined; mtu: number }>;

/** A stock of sandboxes: making one takes 1.5 ms, setting the address of a ready one 0.3 ms. */
export class Sandboxes implements Disposable {
  readonly #on: BridgePort;
  readonly #background: Background;
  readonly #ready: Sandbox[] = [];
  #target = MINIMUM_READY;
  #refill: Disposable | undefined;
  #shrink: Disposable | undefined;

  constructor(on: BridgePort, background: Background) {
    this.#on = on;
    this.#background = background;
    this.#scheduleRefill(on.bridge === undefined ? REFILL_AFTER_MS : FIRST_AFTER_MS);
  }

  get ready(): number {
    return this.#ready.length;
  }

  /** A ready sandbox, or a new one. It belongs to the caller, who disposes it or passes it on. */
  take(): Sandbox {
    const sandbox = this.#ready.shift();
    if (sandbox === undefined) this.#target = Math.min(this.#target * 2, MAXIMUM_READY);
    this.#scheduleRefill();
    return sandbox ?? this.#makeNow();
  }

  [Symbol.dispose](): void {
    this.#refill?.[Symbol.dispose]();
    this.#shrink?.[Symbol.dispose]();
    for (const sandbox of this.#ready.splice(0)) disposeSandbox(sandbox);
  }

  #makeNow(): Sandbox {
    try {
      return makeSandbox(this.#on);
    } catch (error) {
      if (!hasCode(error, 'EXFULL')) throw error;
      throw new EngineError('failed', 'the bridge is full: the kernel gives a bridge 1023 ports', { cause: error });
    }
  }

  // One at a time, so that a request waits for at most one.
  #scheduleRefill(milliseconds = REFILL_AFTER_MS): void {
    if (this.#refill !== undefined || this.#ready.length >= this.#target) return;
    // With a full bridge, or without free descriptors, the next start tries by itself and reports the reason to its
    // client.
    this.#refill = this.#background.after(milliseconds, 'prepare a network namespace', {}, () => {
      this.#refill = undefined;
      this.#ready.push(makeSandbox(this.#on));
      this.#scheduleRefill();
      this.#scheduleShrink();
    });
  }

  #scheduleShrink(): void {
    if (this.#target === MINIMUM_READY) return;
    this.#shrink?.[Symbol.dispose]();
    this.#shrink = this.#background.after(SHRINK_AFTER_MS, 'close network namespaces', {}, () => {
      this.#target = MINIMUM_READY;
      for (const sandbox of this.#ready.splice(MINIMUM_READY)) disposeSandbox(sandbox);
    });
  }
}

/** Closes a sandbox; the kernel removes namespace and links later. */
export function disposeSandbox({ netns, inside }: Sandbox): void {
  inside[Symbol.dispose]();
  closeSync(netns);
}

/** Settings of both ends of a link to a container: nobody in a network is a router, and our end is a port without addresses. */
export function distrustPair(port: string, inside: { name: string; netns: number }): void {
  ignoreRouters(port);
  disableIPv6(port);
  withNetns(inside.netns, () => ignoreRouters(inside.name));
}

function makeSandbox({ route, bridge, mtu }: BridgePort): Sandbox {
  let inside: Netlink | undefined;
  const netns = newContainerNetns(() => {
    prepareNetns();
    if (bridge === undefined) addDnsRules(); // of user networks
    inside = new Netlink();
  });
  using undo = new DisposableStack();
  undo.defer(() => closeSync(netns));
  if (inside === undefined) throw new Error('the namespace was not prepared');
  undo.use(inside);
  const name = `veth${randomBytes(4).toString('hex').slice(0, 7)}`;
  route.apply(createVeth({ name, master: bridge, mtu, up: true, peer: { name: 'eth0', netns } }));
  distrustPair(name, { name: 'eth0', netns });
  const eth0 = getLink(inside, 'eth0').index;
  // Set up here, so that the bridge port forwards long before the container sends its first packet.
  inside.apply(changeLink(LOOPBACK, { up: true }), changeLink(eth0, { up: true }));
  const port = getLink(route, name).index;
  // With br_netfilter, a container that calls its own published port gets the answer through the port it came from.
  if (bridge !== undefined) route.apply(changeLink(port, { hairpin: true }));
  const sandbox = { netns, inside, eth0, port: { index: port, name } };
  undo.move();
  return sandbox;
}
