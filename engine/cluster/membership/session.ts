import type { Engine } from '../../engine.ts';
import { settlesWithin, type Clock } from '../../lib/clock.ts';
import { EngineError } from '../../lib/errors.ts';
import { messageOf } from '../../lib/failure-message.ts';
import { FROM_LEADER_LIMITS } from '../wire/allowance.ts';
import { Channel } from '../wire/channel.ts';
import { NotLeader, NotReached, type WireClient } from '../wire/client.ts';
import { FromLeader, type FromNode } from '../wire/schemas.ts';
import { upgradeToLeader } from './upgrade-to-leader.ts';

type Needs = Pick<Engine, 'background' | 'clock' | 'log'> & Readonly<{ client: WireClient }>;
type Hello = Extract<FromNode, { say: 'hello' }>;
type Settings = Readonly<{
  /** The addresses to try, the likeliest first. */
  managers: () => readonly string[];
  description: () => Hello['description'];
  /** Where the node is reached. */
  address: () => string;
  /** Its root and the issuer of its certificate. */
  tls: () => Hello['tls'];
  /** Its address for the traffic of overlays, where it is another one. */
  dataPath: () => string | undefined;
  /** `answer` is for this session only. */
  told: (message: FromLeader, answer: (message: FromNode) => void) => void;
}>;

const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 8000;
/** Until the leader names its own. */
const FIRST_PERIOD_MS = 5000;
/** The leader answers each beat. */
const MISSED_BEATS = 3;

/**
 * The session of a node with the leader, for as long as the node is a member: a connection that ends is replaced, with
 * whichever manager answers. So is one in which the node could not do as it was told: the leader tells all anew.
 */
export class Session implements AsyncDisposable {
  readonly #needs: Needs;
  readonly #settings: Settings;
  readonly #done: Promise<void>;
  #welcome = Promise.withResolvers<void>();
  #channel: Channel<typeof FromLeader, FromNode> | undefined;
  #isEnding = false;
  #again = Promise.withResolvers<void>();
  /** Why there is no session at the moment; empty while there is one. */
  problem = '';

  constructor(needs: Needs, settings: Settings) {
    this.#needs = needs;
    this.#settings = settings;
    this.#done = this.#run();
  }

  /** Resolves when the leader knows the node. */
  get welcomed(): Promise<void> {
    return this.#welcome.promise;
  }

  /** Makes a new connection: with a new certificate, or to a new leader. */
  renew(): void {
    this.#channel?.[Symbol.dispose]();
    this.#again.resolve();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isEnding = true;
    this.#again.resolve();
    this.#channel?.[Symbol.dispose]();
    await this.#done;
  }

  async #run(): Promise<void> {
    let delayMs = FIRST_RETRY_MS;
    while (!this.#isEnding) {
      this.#again = Promise.withResolvers();
      try {
        await this.#connect();
        delayMs = FIRST_RETRY_MS;
      } catch (error) {
        if (!(error instanceof NotReached || error instanceof NotLeader || error instanceof EngineError)) {
          this.#needs.log.error({ err: error }, 'the session with the leader fails');
        }
        this.problem = messageOf(error);
        await this.#pause(delayMs);
        delayMs = Math.min(delayMs * 2, MAX_RETRY_MS);
      }
    }
  }

  async #connect(): Promise<void> {
    const socket = await upgradeToLeader(this.#needs.client, this.#settings.managers(), '/v1/session');
    if (this.#isEnding) return void socket.destroy();
    const { clock } = this.#needs;
    let failure: unknown;
    const receive = (message: FromLeader): void => {
      heartbeat.heard();
      if (message.say === 'welcome' || message.say === 'period') heartbeat.begin(message.periodMs);
      if (message.say === 'welcome') {
        this.problem = '';
        this.#welcome.resolve();
      }
      try {
        this.#settings.told(message, (answer) => channel.send(answer));
      } catch (error) {
        failure = error;
        channel[Symbol.dispose]();
      }
    };
    const channel: Channel<typeof FromLeader, FromNode> = new Channel(socket, {
      schema: FromLeader,
      limits: FROM_LEADER_LIMITS,
      clock,
      receive,
      refused: (reason) => {
        failure = new EngineError('failed', `the leader broke the protocol of sessions: ${reason}`);
      },
    });
    this.#channel = channel;
    using heartbeat = new Heartbeat(channel, clock);
    const dataPath = this.#settings.dataPath();
    channel.send({
      say: 'hello',
      description: this.#settings.description(),
      address: this.#settings.address(),
      ...(dataPath === undefined ? {} : { dataPath }),
      tls: this.#settings.tls(),
      syncs: true,
      files: true,
      logs: true,
    });
    await channel.closed;
    heartbeat[Symbol.dispose]();
    this.#channel = undefined;
    if (failure !== undefined) throw failure; // such as a full disk
    this.problem = 'the leader has ended the session';
    if (!this.#isEnding) await this.#pause(FIRST_RETRY_MS);
  }

  async #pause(milliseconds: number): Promise<void> {
    await settlesWithin(this.#again.promise, milliseconds / 1000, this.#needs.clock);
  }
}

/** Beats of one session. Closes a silent one: TCP keeps the connection of a lost machine for a quarter of an hour. */
class Heartbeat implements Disposable {
  readonly #channel: Channel<typeof FromLeader, FromNode>;
  readonly #clock: Clock;
  #periodMs = FIRST_PERIOD_MS;
  #heardMs = performance.now();
  #beats: Disposable | undefined;
  #checks: Disposable;

  constructor(channel: Channel<typeof FromLeader, FromNode>, clock: Clock) {
    this.#channel = channel;
    this.#clock = clock;
    this.#checks = clock.after(this.#periodMs, () => this.#check());
  }

  heard(): void {
    this.#heardMs = performance.now();
  }

  /** Beats at once, and then in this period. */
  begin(periodMs: number): void {
    this.#periodMs = periodMs;
    this.#beat();
  }

  [Symbol.dispose](): void {
    this.#beats?.[Symbol.dispose]();
    this.#checks[Symbol.dispose]();
  }

  #beat(): void {
    this.#beats?.[Symbol.dispose]();
    this.#channel.send({ say: 'beat' });
    this.#beats = this.#clock.after(this.#periodMs * (0.9 + Math.random() * 0.1), () => this.#beat());
  }

  #check(): void {
    if (performance.now() - this.#heardMs > MISSED_BEATS * this.#periodMs) this.#channel[Symbol.dispose]();
    else this.#checks = this.#clock.after(this.#periodMs, () => this.#check());
  }
}
