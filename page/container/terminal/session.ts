import type { Terminal } from '@xterm/xterm';

import { apiUrl, call } from '../../api/request.ts';

/** bash where the image has it. */
const SHELL = ['/bin/sh', '-c', 'command -v bash >/dev/null 2>&1 && exec bash; exec sh'];

/** Creates a shell in a container; returns the id of its exec. */
export async function openShell(containerId: string, size: { width: number; height: number }): Promise<string> {
  const { Id } = await call<{ Id: string }>('POST', `/containers/${containerId}/exec`, {
    body: {
      Cmd: SHELL,
      Env: ['TERM=xterm-256color'],
      Tty: true,
      AttachStdin: true,
      AttachStdout: true,
      AttachStderr: true,
      DetachKeys: 'ctrl-@,ctrl-@,ctrl-@', // a tab is closed instead
      ConsoleSize: [size.height, size.width],
    },
  });
  return Id;
}

/** The address of a WebSocket of the API; that of a page over TLS is over TLS too. */
export function socketUrl(path: string, page: string): URL {
  const url = new URL(apiUrl(path), page);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  return url;
}

/** Connects a terminal to its shell, until one of them ends. */
export function connectShell(terminal: Terminal, id: string, signal: AbortSignal): void {
  const socket = new WebSocket(socketUrl(`/exec/${id}/ws`, location.href));
  socket.binaryType = 'arraybuffer';
  const encoder = new TextEncoder();
  const send = (bytes: Uint8Array<ArrayBuffer>): void => {
    if (socket.readyState === WebSocket.OPEN) socket.send(bytes);
  };
  terminal.onData((text) => send(encoder.encode(text)));
  terminal.onBinary((text) => send(Uint8Array.from(text, (character) => character.charCodeAt(0))));
  terminal.onResize(({ cols, rows }) => {
    if (socket.readyState !== WebSocket.OPEN) return;
    // A shell that ends in this moment has no size any more.
    call('POST', `/exec/${id}/resize`, { query: { w: cols, h: rows } }).catch(() => undefined);
  });
  socket.addEventListener('message', ({ data }) => {
    if (data instanceof ArrayBuffer) terminal.write(new Uint8Array(data));
  });
  socket.addEventListener('close', () => {
    if (!signal.aborted) terminal.write('\r\n[the shell has ended]\r\n');
  });
  signal.addEventListener('abort', () => socket.close());
}
