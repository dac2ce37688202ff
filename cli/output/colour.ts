type Stream = 'stdout' | 'stderr';

/** Colours are used on terminals, unless NO_COLOR is set (https://no-color.org). */
function coloured(stream: Stream): boolean {
  const { NO_COLOR = '', TERM = '' } = process.env;
  return NO_COLOR === '' && TERM !== 'dumb' && process[stream].isTTY;
}

export function bold(text: string, stream: Stream = 'stdout'): string {
  return coloured(stream) ? `\u001b[1m${text}\u001b[22m` : text;
}

export function red(text: string, stream: Stream = 'stderr'): string {
  return coloured(stream) ? `\u001b[31m${text}\u001b[39m` : text;
}

export function yellow(text: string, stream: Stream = 'stderr'): string {
  return coloured(stream) ? `\u001b[33m${text}\u001b[39m` : text;
}
