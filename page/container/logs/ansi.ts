export type Span = Readonly<{ text: string; classes: string; colour?: string; background?: string }>;
type Style = { colour: string; background: string; classes: Set<string> };

/** Escape sequences of a terminal: colours (CSI … m), others (CSI, OSC, single), and control characters. */
const SEQUENCE =
  // oxlint-disable-next-line eslint/no-control-regex -- they are looked for
  /\x1b\[([0-9;:]*)m|\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.?|[\0-\x08\x0b-\x1f\x7f-\x9f]/g;

const NAMED = 16;
const ATTRIBUTES: ReadonlyMap<number, string> = new Map([
  [1, 'bold'],
  [2, 'faint'],
  [3, 'italic'],
  [4, 'underline'],
  [9, 'struck'],
]);
const ENDS: ReadonlyMap<number, readonly string[]> = new Map([
  [22, ['bold', 'faint']],
  [23, ['italic']],
  [24, ['underline']],
  [29, ['struck']],
]);

/** A line with its colours; all other escape sequences and control characters are dropped. */
export function ansiSpans(line: string): Span[] {
  const spans: Span[] = [];
  const style: Style = { colour: '', background: '', classes: new Set() };
  let at = 0;
  for (const match of line.matchAll(SEQUENCE)) {
    add(spans, line.slice(at, match.index), style);
    if (match[1] !== undefined) apply(style, match[1].split(/[;:]/).map(Number));
    at = match.index + match[0].length;
  }
  add(spans, line.slice(at), style);
  return spans;
}

/** The characters of a line alone. */
export function plainText(line: string): string {
  return line.replaceAll(SEQUENCE, '');
}

function add(spans: Span[], text: string, { colour, background, classes }: Style): void {
  if (text === '') return;
  const named = [colour, background].filter((one) => one.startsWith('ansi'));
  spans.push({
    text,
    classes: [...classes, ...named].join(' '),
    ...(colour.startsWith('rgb') && { colour }),
    ...(background.startsWith('rgb') && { background }),
  });
}

function apply(style: Style, codes: readonly number[]): void {
  const rest = [...codes];
  for (let code = rest.shift(); code !== undefined; code = rest.shift()) {
    const attribute = ATTRIBUTES.get(code);
    if (code === 0) Object.assign(style, { colour: '', background: '', classes: new Set() });
    else if (attribute !== undefined) style.classes.add(attribute);
    else if (ENDS.has(code)) for (const name of ENDS.get(code)!) style.classes.delete(name);
    else if (code === 38) style.colour = extended(rest, 'ansi-');
    else if (code === 48) style.background = extended(rest, 'ansi-on-');
    else if (code === 39) style.colour = '';
    else if (code === 49) style.background = '';
    else if (code >= 30 && code <= 37) style.colour = `ansi-${code - 30}`;
    else if (code >= 90 && code <= 97) style.colour = `ansi-${code - 82}`;
    else if (code >= 40 && code <= 47) style.background = `ansi-on-${code - 40}`;
    else if (code >= 100 && code <= 107) style.background = `ansi-on-${code - 92}`;
  }
}

/** `5;N` of 256 colours, or `2;R;G;B`. Takes its numbers away. */
function extended(rest: number[], prefix: string): string {
  const kind = rest.shift();
  if (kind === 2) return rgb(rest.splice(0, 3));
  if (kind !== 5) return '';
  const number = rest.shift() ?? 0;
  if (number < NAMED) return `${prefix}${number}`;
  if (number >= 232) return rgb(Array.from({ length: 3 }, () => 8 + (number - 232) * 10));
  const cube = number - NAMED;
  return rgb(
    [Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6].map((level) => (level === 0 ? 0 : 55 + level * 40)),
  );
}

function rgb(values: readonly number[]): string {
  return `rgb(${[0, 1, 2].map((at) => Math.min(255, Math.max(0, Math.trunc(values[at] ?? 0) || 0))).join(' ')})`;
}
