const CELL = /(?<!\\)\|/;

/** A row of a table with a column `test`. */
export type TestedRow = Readonly<{ line: number; subject: string; tests: readonly string[]; isComplete: boolean }>;

/**
 * Reads the rows of all tables whose last column is `test`. A row is incomplete if it has a remark and names neither tests nor
 * `untested`, or if it has another number of cells than its head.
 */
export function testedRows(markdown: string): TestedRow[] {
  const rows: TestedRow[] = [];
  let head: readonly string[] = [];
  for (const [at, line] of markdown.split('\n').entries()) {
    if (!line.startsWith('|')) head = [];
    else if (head.length === 0) head = cellsOf(line);
    else if (head.at(-1) === 'test' && !/^\|[\s:|-]+\|$/.test(line)) rows.push(rowOf(at + 1, cellsOf(line), head));
  }
  return rows;
}

function rowOf(line: number, cells: readonly string[], head: readonly string[]): TestedRow {
  const tests = [...(cells.at(-1) ?? '').matchAll(/`([^`]+)`/g)].map(([, path]) => path!);
  const hasNoRemark = head.includes('remark') && cells[head.indexOf('remark')] === '';
  const isComplete = cells.length === head.length && (tests.length > 0 || hasNoRemark);
  return { line, subject: cells.slice(0, 2).join(' '), tests, isComplete };
}

function cellsOf(line: string): string[] {
  return line
    .trim()
    .split(CELL)
    .slice(1, -1)
    .map((cell) => cell.trim());
}
