import { ChangeMonitor } from '../../host/network/change-monitor.ts';
import { hasCode } from '../../lib/errors.ts';

/** After that long another link with the address is not one that the kernel still removes. */
export const LEAVE_TIMEOUT_MS = 10_000;

/**
 * Repeats work while another link over the parent has the address: that of an ended container, until the kernel has
 * removed its namespace, which it tells as a change of the parent. This thread is in the parent's namespace.
 */
export async function onceAddressIsFree(work: () => void): Promise<void> {
  let told: (() => void) | undefined;
  using _monitor = new ChangeMonitor('links', () => told?.());
  const expired = AbortSignal.timeout(LEAVE_TIMEOUT_MS);
  expired.addEventListener('abort', () => told?.());
  for (;;) {
    const { promise: change, resolve } = Promise.withResolvers<void>();
    told = resolve;
    try {
      return work();
    } catch (error) {
      if (!hasCode(error, 'EADDRINUSE') || expired.aborted) throw error;
    }
    await change;
  }
}
