/** Longer than the rewriting of the largest file takes. */
const MAX_MS = 240_000;

/** The one manager whose etcd may be out of service on purpose: while it starts with other settings, or rewrites its file. */
export class Outage {
  #node: string | undefined;
  #untilMs = 0;

  /** False: it is another manager's turn. */
  begin(node: string): boolean {
    if (this.#node !== undefined && this.#node !== node && performance.now() < this.#untilMs) return false;
    this.#node = node;
    this.#untilMs = performance.now() + MAX_MS;
    return true;
  }

  end(node: string): boolean {
    if (this.#node === node) this.#node = undefined;
    return true;
  }
}
