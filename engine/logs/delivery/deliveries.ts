import { settlesWithin } from '../../lib/clock.ts';
import { logDriverOf } from '../drivers.ts';
import type { LoggedContainer } from '../logged-container.ts';
import { checkpointPath } from './buffer-path.ts';
import { readCheckpoint } from './checkpoint.ts';
import { Delivery, type DeliveryNeeds, type DeliveryStatus } from './delivery.ts';
import { lastNumber } from './last-number.ts';

/** A removal waits this long for a receiver. */
const LAST_SECONDS = 10;

/** The deliveries of all containers whose log driver has a receiver. */
export class Deliveries implements Disposable {
  readonly #needs: DeliveryNeeds;
  readonly #byId = new Map<string, Delivery>();

  constructor(needs: DeliveryNeeds) {
    this.#needs = needs;
  }

  /** The container runs. */
  follow(container: LoggedContainer): void {
    this.#guarded('begin to deliver a log', container, (delivery) => delivery.follow(container));
  }

  /** It does not run any more, or not yet again: the rest is delivered. */
  runEnded(container: LoggedContainer): void {
    this.#guarded('deliver the rest of a log', container, (delivery) => delivery.runEnded());
  }

  /** Undefined without a delivery. The object is the same until something changes. */
  statusOf(id: string): DeliveryStatus | undefined {
    return this.#byId.get(id)?.status;
  }

  /** The container is being removed: waits a moment for its last lines. */
  async remove(container: LoggedContainer): Promise<void> {
    const delivery = this.#of(container);
    if (delivery === undefined) return;
    await settlesWithin(delivery.settled(), LAST_SECONDS, this.#needs.clock);
    this.#byId.delete(container.id);
    delivery[Symbol.dispose]();
    tellUndelivered(this.#needs, container.id, container.logPath);
  }

  /** A run does not depend on its delivery. */
  #guarded(name: string, container: LoggedContainer, work: (delivery: Delivery) => void): void {
    if (logDriverOf(container).deliver === undefined) return;
    this.#needs.background.run(name, { container: container.id }, () => {
      const delivery = this.#of(container);
      if (delivery !== undefined) work(delivery);
    });
  }

  [Symbol.dispose](): void {
    for (const delivery of this.#byId.values()) delivery[Symbol.dispose]();
    this.#byId.clear();
  }

  #of(container: LoggedContainer): Delivery | undefined {
    const { id } = container;
    const known = this.#byId.get(id);
    if (known !== undefined) return known;
    const driver = logDriverOf(container);
    if (driver.deliver === undefined) return undefined;
    const made = new Delivery(this.#needs, container, driver);
    this.#byId.set(id, made);
    return made;
  }
}

/** For a container that is removed: logs which lines of its buffer are lost with it. */
export function tellUndelivered({ log }: Pick<DeliveryNeeds, 'log'>, container: string, logPath: string): void {
  const { position } = readCheckpoint(checkpointPath(logPath));
  const lines = lastNumber(logPath) - position.seq;
  if (lines > 0) log.warn({ container, lines }, 'lines of a removed container were lost: they could not be delivered');
}
