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
  terminal.attachCustomKeyEventHandler((event) => !isForBrowser(event, terminal));
  const fitNow = (): void => {
    if (element.clientWidth > 0) fit.fit();
  };
  fitNow();
  return { terminal, fitNow };
}

/**
 * Ctrl-Shift-C copies the selection, and so does Ctrl-C where there is one; without one it is for the program. Pasting is the
 * browser's: Ctrl-V and Ctrl-Shift-V.
 */
function isForBrowser(event: KeyboardEvent, terminal: Terminal): boolean {
  if (event.type !== 'keydown' || !event.ctrlKey || event.altKey || event.metaKey) return false;
  if (event.code === 'KeyV') return true;
  if (event.code !== 'KeyC' || !(event.shiftKey || terminal.hasSelection())) return false;
  event.preventDefault(); // Ctrl-Shift-C opens the browser's tools
  if (terminal.hasSelection()) void navigator.clipboard.writeText(terminal.getSelection()).catch(() => undefined);
  terminal.clearSelection();
  return true;
}
