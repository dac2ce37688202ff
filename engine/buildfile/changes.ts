import { EngineError } from '../lib/errors.ts';
import type { RunConfig } from '../records/run-config.ts';
import { applySetting, type Settings } from './apply-setting.ts';
import { expandStep } from './expansion/expand-instruction.ts';
import { expandToWords, expandWord, variablesOf } from './expansion/expand.ts';
import { ExpansionBudget } from './expansion/expansion-budget.ts';
import { isSetting } from './instruction.ts';
import { parseFile } from './parse.ts';
import { readInstruction } from './read-instruction.ts';

const ALLOWED: ReadonlySet<string> = new Set([
  ...['cmd', 'entrypoint', 'env', 'expose', 'healthcheck', 'label', 'onbuild', 'stopsignal'],
  ...['user', 'volume', 'workdir'],
]);

/**
 * Applies instructions such as `CMD ["sh"]` or `ENV A=b` to an image's settings, as the `changes` of a commit or an import
 * ask for; each string may hold several lines.
 *
 * Throws `invalid`.
 */
export function applyChanges(changes: readonly string[], base: RunConfig): RunConfig {
  if (changes.length === 0) return base;
  const { lines, escape } = parseFile(changes.join('\n'));
  const unknown = lines.find(({ keyword }) => !ALLOWED.has(keyword));
  if (unknown !== undefined) {
    throw new EngineError('invalid', `${unknown.keyword} is not a valid change command`);
  }
  const steps = lines.map((line) => readInstruction(line)).filter(isSetting);
  let settings: Settings = { config: base, maintainer: '', hasCommand: false };
  for (const step of steps) {
    const variables = variablesOf(settings.config.Env ?? []);
    const budget = new ExpansionBudget();
    const expanded = expandStep(step, (word) => expandWord(word, variables, escape, budget));
    settings = applySetting(settings, expanded, (word) => expandToWords(word, variables, escape, budget)).settings;
  }
  return settings.config;
}
