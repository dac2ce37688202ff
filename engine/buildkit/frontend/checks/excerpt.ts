import type { Place } from './linter.ts';

const RULE = '--------------------';
/** Lines around a place, all together: fewer where the place has several lines itself. */
const [AROUND_ONE, AROUND_MORE] = [4, 2];

/** The lines of a place with some around them; those of the place are marked. */
export function excerpt(
  { name, lines }: Readonly<{ name: string; lines: readonly string[] }>,
  { number, end }: Place,
): string {
  const last = Math.min(end, lines.length);
  let [from, to] = [number, last];
  for (let added = 0; added < (number === last ? AROUND_ONE : AROUND_MORE); added += 1) {
    if (from > 1) {
      from -= 1;
      added += 1;
    }
    if (to < lines.length) {
      to += 1;
      added += 1;
    }
  }
  const rows = lines.slice(from - 1, to).map((line, index) => {
    const at = from + index;
    return ` ${String(at).padStart(3)} | ${at >= number && at <= last ? '>>>' : '   '} ${line}\n`;
  });
  return `${name}:${number}\n${RULE}\n${rows.join('')}${RULE}\n`;
}
