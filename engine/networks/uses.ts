import { EngineError } from '../lib/errors.ts';
import { refuseEndpoint } from './settings/configurations.ts';
import type { NetworkRecord, NetworkStore } from './store.ts';

/** The users of a network during calls of its driver, which the records of endpoints do not have yet, or no longer. */
export class NetworkUses {
  readonly #store: Pick<NetworkStore, 'endpointsIn'>;
  readonly #joining = new Map<string, number>();
  readonly #leaving = new Set<string>();

  constructor(store: Pick<NetworkStore, 'endpointsIn'>) {
    this.#store = store;
  }

  /** For as long as an endpoint is being made. Throws `notFound` for a network that is being removed, and `forbidden`. */
  join({ id, name, custom }: Pick<NetworkRecord, 'id' | 'name' | 'custom'>): Disposable {
    refuseEndpoint(custom);
    if (this.#leaving.has(id)) throw new EngineError('notFound', `network ${name} not found`);
    this.#joining.set(id, (this.#joining.get(id) ?? 0) + 1);
    return {
      [Symbol.dispose]: () => {
        const left = this.#joining.get(id)! - 1;
        if (left > 0) this.#joining.set(id, left);
        else this.#joining.delete(id);
      },
    };
  }

  /** For as long as the network is being removed. Throws `forbidden` while it is used, `notFound` for a second one. */
  remove({ id, name }: Pick<NetworkRecord, 'id' | 'name'>): Disposable {
    if (this.#leaving.has(id)) throw new EngineError('notFound', `network ${name} not found`);
    if (this.#joining.has(id) || this.#store.endpointsIn(id).length > 0) {
      const reason = `network ${name} id ${id} has active endpoints`;
      throw new EngineError('forbidden', `error while removing network: ${reason}`);
    }
    this.#leaving.add(id);
    return { [Symbol.dispose]: () => void this.#leaving.delete(id) };
  }
}
