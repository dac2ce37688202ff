import type { Events } from '../../events/events.ts';
import type { Replica } from '../state/replica.ts';
import type { SecretKind } from './kinds.ts';

/** Emits an event for each secret and config that is created, updated or removed, on every manager. */
export class SecretEvents implements Disposable {
  readonly #events: Events;
  readonly #commits: Disposable;
  /** Names by kind and id: a removal has no record. */
  readonly #names = new Map<string, string>();
  #isFirst = true;

  constructor(events: Events, replica: Replica) {
    this.#events = events;
    this.#commits = replica.onCommit(({ changes }) => {
      // The first commit is the whole state, which is no news.
      const isNews = !this.#isFirst;
      this.#isFirst = false;
      for (const { kind, id, record } of changes) {
        if (kind === 'secret' || kind === 'config') this.#follow(kind, id, record?.name, isNews);
      }
    });
  }

  [Symbol.dispose](): void {
    this.#commits[Symbol.dispose]();
  }

  #follow(kind: SecretKind, id: string, name: string | undefined, isNews: boolean): void {
    const key = `${kind}/${id}`;
    const before = this.#names.get(key);
    if (name === undefined) this.#names.delete(key);
    else this.#names.set(key, name);
    const known = name ?? before;
    if (!isNews || known === undefined) return;
    const action = name === undefined ? 'remove' : before === undefined ? 'create' : 'update';
    this.#events.emit(kind, action, id, { name: known });
  }
}
