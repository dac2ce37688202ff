import { FitAddon } from '@xterm/addon-fit';
import { Terminal } from '@xterm/xterm';

/** Makes a terminal that fills its place; loaded with the first shell. */
export function createTerminal(element: HTMLElement): { terminal: Terminal; fitNow: () => void } {
  const terminal = new Terminal({
    fontFamily: 'ui-monospace, monospace',
    fontSize: 13,
    scrollback: 10_000,
    screenReaderMode: false,
    linkHandler: { activate: () => undefined }, // links of a program lead nowhere
  });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.open(element);
  const fitNow = (): void => {
    if (element.clientWidth > 0) fit.fit();
  };
  fitNow();
  return { terminal, fitNow };
}
