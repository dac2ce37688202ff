/** A place whose words hide their subject: `../docs/decisions` and CONTRIBUTING.md say how sentences look here. */
export type Finding = Readonly<{ line: number; reason: string; text: string }>;

const RULES: readonly Readonly<{ pattern: RegExp; reason: string; onlyIn?: RegExp }>[] = [
  {
    pattern: /(?:^\s*(?:\/\*\*|\*|\/\/|\/\*)|[^:'"`]\/\/)\s+(?:Of|What|Who|Whose|The same)\b/,
    reason: 'a comment begins with its subject',
  },
  {
    pattern: /^\s*#\s+(?:Of|What|Who|Whose|The same)\b/,
    reason: 'a comment begins with its subject',
    onlyIn: /(?:^|\/)(?:gantry|Makefile|[^/]+\.sh)$/,
  },
  {
    pattern: /\b(?:test|it|suite|describe)\(\s*['"`](?:[^'"`]*\s)?(?:what|who|whose)\b/i,
    reason: 'a test is named by its subject and behaviour',
    onlyIn: /\.(?:test|contract)\.ts$/,
  },
  { pattern: /\b(?:MOST|LONGEST|LARGEST|FEWEST)_[A-Z]/, reason: 'a limit is called MAX_ or MIN_' },
];

/** Finds the lines of a source that break a rule. */
export function findHiddenSubjects(path: string, source: string): Finding[] {
  return source
    .split('\n')
    .flatMap((text, at) =>
      RULES.filter(({ pattern, onlyIn }) => (onlyIn === undefined || onlyIn.test(path)) && pattern.test(text)).map(
        ({ reason }) => ({ line: at + 1, reason, text: text.trim() }),
      ),
    );
}
