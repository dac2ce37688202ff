import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

import { messageOfError } from '../../api/request.ts';
import { connectShell, openShell } from './session.ts';

/** A shell in a container, as a terminal. It ends when it is taken off the page. */
export function Shell({ containerId, isShown }: { containerId: string; isShown: boolean }): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  const fit = useRef<(() => void) | undefined>(undefined);
  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    const ending = new AbortController();
    const begin = async (): Promise<void> => {
      const { createTerminal } = await import('./terminal.ts');
      if (ending.signal.aborted) return;
      const { terminal, fitNow } = createTerminal(element);
      fit.current = fitNow;
      const sizes = new ResizeObserver(fitNow);
      sizes.observe(element);
      ending.signal.addEventListener('abort', () => {
        sizes.disconnect();
        terminal.dispose();
      });
      try {
        const id = await openShell(containerId, { width: terminal.cols, height: terminal.rows });
        connectShell(terminal, id, ending.signal);
        terminal.focus();
      } catch (error) {
        terminal.write(`\r\n${messageOfError(error)}\r\n`);
      }
    };
    void begin();
    return () => ending.abort();
  }, []);
  useEffect(() => {
    if (isShown) fit.current?.();
  }, [isShown]);
  return <div class="terminal" hidden={!isShown} ref={place} />;
}
