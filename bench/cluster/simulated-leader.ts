import { createServer, type Server } from 'node:net';
import type { Duplex } from 'node:stream';

import { issue, newKey } from '@gantry/engine/cluster/ca/certificates.ts';
import { SPARE_BYTES, EtcdMaintenance } from '@gantry/engine/cluster/etcd/etcd-maintenance.ts';
import { QUOTA_BYTES } from '@gantry/engine/cluster/etcd/flags.ts';
import type { Etcd } from '@gantry/engine/cluster/etcd/gateway.ts';
import { Election } from '@gantry/engine/cluster/leader/election.ts';
import { Leadership } from '@gantry/engine/cluster/leader/leadership.ts';
import type { WriteArguments, WriteName } from '@gantry/engine/cluster/leader/write-schemas.ts';
import { Feed } from '@gantry/engine/cluster/state/feed.ts';
import type { Authority } from '@gantry/engine/cluster/state/records.ts';
import { Replica } from '@gantry/engine/cluster/state/replica.ts';
import { Nothing } from '@gantry/engine/cluster/wire/schemas.ts';
import { upgrade, WireServer, type Peer } from '@gantry/engine/cluster/wire/server.ts';
import { systemClock } from '@gantry/engine/lib/clock.ts';
import type { Background } from '@gantry/engine/lib/concurrency/background.ts';
import type { Logger } from 'pino';

import { SIMULATED } from './records.ts';

const NODE = 'leader';

/** Leads by a lease as a manager does, over and over again: each time as another manager would after the end of the last one. */
export class SimulatedLeader implements AsyncDisposable {
  readonly replica = new Replica(systemClock);
  leadership: Leadership | undefined;
  /** Open ones. */
  sessions = 0;
  /** Leaderships that ended though nobody asked for it. */
  losses = 0;
  readonly #parts;
  readonly #feed: Feed;
  readonly #maintenance: EtcdMaintenance;
  readonly #sockets = new Set<Duplex>();
  #election: Election | undefined;
  #isEnding = false;
  #server: Server | undefined;
  #wire: WireServer | undefined;

  constructor(background: Background, log: Logger, etcd: Etcd) {
    this.#parts = {
      background,
      clock: systemClock,
      log,
      etcd,
      replica: this.replica,
      node: NODE,
      identity: () => ({ certificate: '', key: '' }),
      dataKey: async () => await Promise.resolve(Buffer.alloc(32)),
      knownDataKey: () => undefined,
      resign: async () => await Promise.resolve(),
    };
    this.#feed = new Feed({ ...this.#parts, open: (cluster) => cluster });
    this.#maintenance = new EtcdMaintenance(this.#parts, {
      quotaBytes: QUOTA_BYTES,
      spareBytes: SPARE_BYTES,
      revision: () => this.replica.revision,
      inTurn: async (work) => {
        await work();
        return true;
      },
    });
  }

  async lead(): Promise<void> {
    await this.#end();
    const elected = Promise.withResolvers<{ leaderRevision: number; leaseMs: number }>();
    this.#election = new Election(
      { ...this.#parts, feed: this.#feed },
      {
        node: NODE,
        address: '',
        ping: async () => await Promise.resolve(true),
        elected: (leaderRevision, leaseMs) => elected.resolve({ leaderRevision, leaseMs }),
        ended: () => void (this.losses += this.#isEnding ? 0 : 1),
      },
    );
    const by = await elected.promise;
    if (!(await this.replica.reached(by.leaderRevision, 60_000))) throw new Error('the records do not come');
    this.leadership = new Leadership(this.#parts, by, (reason) => {
      throw reason;
    });
  }

  async write<N extends WriteName>(write: N, args: WriteArguments<N>): Promise<void> {
    await this.leadership!.write({ write, args });
  }

  /** The first line of a connection is the node's id, in place of its certificate. */
  async listen(path: string): Promise<void> {
    const server = createServer((socket) => {
      this.#count(socket);
      socket.once('readable', () => {
        const id = String(socket.read(26)).trim();
        this.#open({ id, role: 'worker' }, socket);
      });
    });
    this.#server = server;
    const listening = Promise.withResolvers<void>();
    server.listen(path, listening.resolve);
    await listening.promise;
  }

  /** The engine's own port 2377: nodes prove who they are. */
  async listenSecurely(place: string, authority: Authority): Promise<void> {
    const { publicKey, privateKey } = newKey();
    const subject = { name: 'leader', unit: 'swarm-manager', organization: SIMULATED };
    const wanted = { subject, publicKey, now: systemClock.now(), lifeSeconds: 86_400, dnsNames: ['swarm-manager'] };
    const certificate = issue(authority, wanted);
    const [ip = '', port = ''] = place.split(':');
    this.#wire = await WireServer.open({
      ip,
      port: Number(port),
      identity: { certificate, key: privateKey, root: authority.certificate, clusterId: SIMULATED },
      routes: {},
      admits: ({ id }) => this.replica.get('node', id) !== undefined,
      upgrades: {
        '/v1/session': upgrade('node', Nothing, (_request, peer, open) => {
          const socket = open();
          this.#count(socket);
          this.#open(peer, socket);
        }),
      },
      clock: systemClock,
      log: this.#parts.log,
    });
  }

  /** Between two leaderships nobody takes it. */
  #open(peer: Peer, socket: Duplex): void {
    if (this.leadership === undefined) socket.destroy();
    else this.leadership.openSession(peer, socket);
  }

  #count(socket: Duplex): void {
    socket.on('error', () => undefined);
    this.#sockets.add(socket);
    this.sessions += 1;
    socket.once('close', () => {
      this.#sockets.delete(socket);
      this.sessions -= 1;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end();
    await this.#wire?.[Symbol.asyncDispose]();
    this.#server?.close();
    this.#maintenance[Symbol.dispose]();
    await this.#feed[Symbol.asyncDispose]();
  }

  async #end(): Promise<void> {
    const { leadership } = this;
    this.leadership = undefined; // it takes no more sessions
    this.#isEnding = true;
    for (const socket of this.#sockets) socket.destroy();
    await leadership?.[Symbol.asyncDispose]();
    await this.#election?.[Symbol.asyncDispose]();
    this.#isEnding = false;
  }
}
