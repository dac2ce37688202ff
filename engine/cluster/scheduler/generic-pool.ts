import type { GenericResource } from '../../lib/notations/generic-resources.ts';

/** The resources of a node that tasks have, by kind: an amount, and names. */
export class GenericPool {
  readonly #amounts = new Map<string, number>();
  readonly #names = new Map<string, Set<string>>();

  /** Counts resources that a task was given, or with `-1` no more. */
  take(given: readonly GenericResource[], times: 1 | -1): void {
    for (const resource of given) {
      const { kind } = resource;
      if ('amount' in resource) this.#amounts.set(kind, (this.#amounts.get(kind) ?? 0) + times * resource.amount);
      else if (times === -1) this.#names.get(kind)?.delete(resource.name);
      else this.#names.set(kind, (this.#names.get(kind) ?? new Set()).add(resource.name));
    }
  }

  /** Chooses what a task gets of the node's resources; undefined where these do not suffice. */
  choose(all: readonly GenericResource[], wanted: readonly GenericResource[]): GenericResource[] | undefined {
    const chosen: GenericResource[] = [];
    for (const [kind, wishes] of Map.groupBy(wanted, (wish) => wish.kind)) {
      const own = all.filter((resource) => resource.kind === kind);
      const names = wishes.flatMap((wish) => ('name' in wish ? [wish.name] : []));
      const amount = wishes.reduce((sum, wish) => sum + ('amount' in wish ? wish.amount : 0), 0);
      const free = own.flatMap((one) => ('name' in one && !this.#isTaken(kind, one.name) ? [one.name] : []));
      if (names.some((name) => !free.includes(name))) return undefined;
      const others = free.filter((name) => !names.includes(name));
      const total = own.reduce((sum, one) => sum + ('amount' in one ? one.amount : 0), 0);
      if (total > 0 && amount > total - (this.#amounts.get(kind) ?? 0)) return undefined;
      if (total === 0 && amount > others.length) return undefined;
      const given = [...names, ...(total > 0 ? [] : others.slice(0, amount))];
      for (const name of given) chosen.push({ kind, name });
      if (total > 0 && amount > 0) chosen.push({ kind, amount });
    }
    return chosen;
  }

  #isTaken(kind: string, name: string): boolean {
    return this.#names.get(kind)?.has(name) === true;
  }
}
