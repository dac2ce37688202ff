import { bold } from './colour.ts';
import { visible } from './escape.ts';

const GAP = 3;
/** Docker’s tables have no narrower column. */
const LEAST = 7;
const WIDE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}]/u;

/** Columns as docker prints them: as wide as their widest cell and at least `least` characters, separated by blanks. */
export function tableText(head: readonly string[], rows: readonly (readonly string[])[], least = LEAST): string {
  const shown = rows.map((row) => row.map(visible));
  const widths = head.map((title, column) =>
    Math.max(least, ...[title, ...shown.map((row) => row[column]!)].map(columnsOf)),
  );
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => cell + ' '.repeat(widths[column]! - columnsOf(cell) + GAP))
      .join('')
      .trimEnd();
  return [bold(line(head)), ...shown.map(line)].join('\n');
}

/** The width on a terminal: most East Asian characters and emoji take two columns, combining marks none. */
function columnsOf(text: string): number {
  // oxlint-disable-next-line no-control-regex -- a fast path for the usual case
  if (/^[\u0020-\u007e]*$/.test(text)) return text.length;
  let columns = 0;
  for (const { segment } of new Intl.Segmenter().segment(text)) columns += WIDE.test(segment) ? 2 : 1;
  return columns;
}
