const MAX_BULLET_LENGTH = 160;
const HEADINGS = new Set(['Upgrade notes', 'Added', 'Changed', 'Fixed', 'Security', 'Removed']);
const VERSION = /^## (?:Unreleased|\d+\.\d+\.\d+ - \d{4}-\d{2}-\d{2})$/;

/** Finds lines of a changelog that are neither a heading of Keep a Changelog nor a bullet of one line under a version. */
export function findChangelogProblems(text: string): string[] {
  const problems: string[] = [];
  let version = '';
  let heading = '';
  for (const [at, line] of text.split('\n').entries()) {
    const report = (reason: string) => problems.push(`${at + 1}: ${reason}: ${line}`);
    if (line.startsWith('## ')) {
      [version, heading] = [line, ''];
      if (!VERSION.test(line)) report('a version is "Unreleased" or "1.2.3 - 2026-01-31"');
    } else if (line.startsWith('### ')) {
      heading = line.slice('### '.length);
      if (!HEADINGS.has(heading)) report('not a heading of Keep a Changelog');
    } else if (version !== '' && line !== '' && !line.startsWith('#### ')) {
      if (heading === '') report('no heading above');
      if (!line.startsWith('- ')) report('a bullet is one line');
      if (line.length > MAX_BULLET_LENGTH) report(`longer than ${MAX_BULLET_LENGTH} characters`);
    } else if (line.startsWith('- ')) {
      report('no version above');
    }
  }
  return problems;
}
