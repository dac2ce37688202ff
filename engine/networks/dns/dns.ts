import type { Background } from '../../lib/concurrency/background.ts';
import { forgetNamesCommand, type Command } from './commands.ts';
import { unregisterCommands, registerCommands, type Registration } from './registration.ts';
import { Resolver } from './resolver.ts';

type DnsSettings = Readonly<{
  background: Background;
  /** The folder of the resolver's socket and journal. */
  folder: string;
  /** All containers to be served now. */
  served: () => readonly Registration[];
  /** The commands for names of other nodes. */
  elsewhere: () => readonly Command[];
}>;

/** The names of containers on user networks, as the resolver gets them. */
export class Dns implements Disposable {
  readonly #settings: DnsSettings;
  readonly #resolver: Resolver;
  /** The networks in which the resolver knows names of a container. */
  readonly #known = new Map<string, readonly string[]>();

  constructor(settings: DnsSettings) {
    this.#settings = settings;
    this.#resolver = new Resolver(settings.folder, () => [
      ...settings.elsewhere(),
      ...settings.served().flatMap((one) => this.#commandsFor(one)),
    ]);
  }

  /** At the daemon's start: updates the resolver with the changes since the last daemon. */
  restore(): void {
    if (this.#settings.served().length === 0) return;
    this.#settings.background.untilDone(
      'restore the names of containers',
      {},
      async () => await this.#resolver.tell([]),
    );
  }

  /** Serves a container, before its first process starts, and makes its names known. Throws `failed`. */
  async serve(served: Registration): Promise<void> {
    await this.#resolver.tell(this.#commandsFor(served));
  }

  /** Updates the names of a container that is served, in the background. */
  change(served: Registration): void {
    const { background } = this.#settings;
    background.untilDone('update the names of a container', { container: served.containerId }, async () => {
      await this.serve(served);
    });
  }

  /** Tells the resolver of changed names of other nodes, if it is there. */
  tell(commands: readonly Command[]): void {
    if (commands.length === 0) return;
    this.#settings.background.untilDone('update the names of a network', {}, async () => {
      await this.#resolver.tellIfThere(commands);
    });
  }

  isServed(containerId: string): boolean {
    return this.#known.has(containerId);
  }

  /** Forgets a container that has ended; ignores one that was never served. */
  forget(containerId: string): void {
    const networks = this.#known.get(containerId);
    if (networks === undefined) return;
    this.#known.delete(containerId);
    this.#settings.background.untilDone('forget the names of a container', { container: containerId }, async () => {
      await this.#resolver.tellIfThere(unregisterCommands(containerId, networks));
    });
  }

  /** Ends the resolver, when no container is left. */
  async end(): Promise<void> {
    await this.#resolver.end();
  }

  [Symbol.dispose](): void {
    this.#resolver[Symbol.dispose]();
  }

  #commandsFor(served: Registration): Command[] {
    const { containerId } = served;
    const now = served.networks.map(({ id }) => id);
    const left = (this.#known.get(containerId) ?? []).filter((id) => !now.includes(id));
    this.#known.set(containerId, now);
    return [...registerCommands(served), ...left.map((id) => forgetNamesCommand(id, containerId))];
  }
}
