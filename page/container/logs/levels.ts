import { plainText } from './ansi.ts';

export type Level = 'error' | 'warning' | 'info' | 'debug';

/** A level stands at the beginning of a line, after its time. */
const LOOKED_AT = 120;
/** Words of levels; written small only where a key or brackets say that it is a level: `level=warn`, `"severity":"error"`, `[info]`. */
const WORDS = /\b(?:level|lvl|severity|loglevel)"?\s*[=:]\s*"?([a-z]+|\d\d)\b|\[\s*([a-z]+)\s*\]|^\W*([a-z]+):\s/i;
const CAPITALS = /\b(FATAL|PANIC|EMERG|ALERT|CRITICAL|CRIT|SEVERE|ERROR|ERR|WARNING|WARN|NOTICE|INFO|DEBUG|TRACE)\b/;

const LEVELS: ReadonlyMap<string, Level> = new Map([
  ...['fatal', 'panic', 'emerg', 'alert', 'critical', 'crit', 'severe', 'error', 'err', 'eror', '60', '50'].map(
    (word) => [word, 'error'] as const,
  ),
  ...['warning', 'warn', '40'].map((word) => [word, 'warning'] as const),
  ...['notice', 'info', '30'].map((word) => [word, 'info'] as const),
  ...['debug', 'trace', '20', '10'].map((word) => [word, 'debug'] as const),
]);

/** The level that a line names, as programs usually do. */
export function levelOf(text: string): Level | undefined {
  const beginning = plainText(text.slice(0, LOOKED_AT));
  const [, ofKey, inBrackets, atStart] = WORDS.exec(beginning) ?? [];
  const word = ofKey ?? inBrackets ?? atStart ?? '';
  return LEVELS.get(word.toLowerCase()) ?? LEVELS.get(CAPITALS.exec(beginning)?.[1]?.toLowerCase() ?? '');
}
