import type { Engine } from '../../engine.ts';
import type { NodeRecord, NodeRole, Stored } from '../state/records.ts';
import type { Replica } from '../state/replica.ts';
import type { Turns } from './turns.ts';

type Needs = Pick<Engine, 'background'> &
  Readonly<{
    replica: Replica;
    turns: Turns;
    /** Its own id. */
    node: string;
    /** Gives leadership up to another manager. */
    resign: () => Promise<void>;
    /** Removes the etcd of a manager. */
    removePeer: (node: string) => Promise<void>;
    tell: (node: string, role: NodeRole) => void;
  }>;

/** Makes the roles of nodes what their records want, one node after the other; what failed is tried again. */
export class Roles implements Disposable {
  readonly #needs: Needs;
  readonly #commits: Disposable;
  #isFollowing = false;
  #isOver = false;

  constructor(needs: Needs) {
    this.#needs = needs;
    this.#commits = needs.replica.onCommit(({ changes }) => {
      if (changes.some(({ kind }) => kind === 'node')) this.#look();
    });
    this.#look();
  }

  /** Another may lead from now on: this one changes no more roles. */
  [Symbol.dispose](): void {
    this.#isOver = true;
    this.#commits[Symbol.dispose]();
  }

  #look(): void {
    if (this.#isFollowing || !this.#unfit().some(() => true)) return;
    this.#isFollowing = true;
    this.#needs.background.untilDone('follow the roles of nodes', {}, async () => {
      const seen = new Set<string>();
      const failures: unknown[] = [];
      for (;;) {
        // By its version: a role may change again meanwhile.
        const node = this.#unfit().find(({ id, version }) => !seen.has(`${id} ${version}`));
        if (node === undefined || this.#isOver) break;
        seen.add(`${node.id} ${node.version}`);
        await this.#follow(node).catch((error: unknown) => failures.push(error));
      }
      if (failures.length > 0 && !this.#isOver) throw failures[0];
      this.#isFollowing = false;
    });
  }

  /** A manager that is lost becomes a worker all the same. */
  #unfit(): IteratorObject<Stored<'node'>> {
    return this.#needs.replica
      .all('node')
      .filter(({ role, spec, status }) => role !== spec.role && (spec.role === 'worker' || status.state !== 'down'));
  }

  async #follow({ id, spec }: NodeRecord): Promise<void> {
    const { node, removePeer, resign, tell, turns } = this.#needs;
    if (spec.role === 'worker') {
      if (id === node) return await resign();
      await removePeer(id);
      await turns.write((draft, now) => {
        const record = draft.get('node', id);
        if (record?.spec.role === 'worker') draft.put('node', { ...record, role: 'worker', updatedAt: now.toString() });
      });
    }
    tell(id, spec.role);
  }
}
