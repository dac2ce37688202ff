import { excerpt } from './excerpt.ts';
import type { Place, Warning } from './linter.ts';
import { rangesOf, resultOf } from './outline.ts';

type Source = Readonly<{ name: string; text: string }>;

/** Characters of the text; warnings behind them have no excerpt. */
const MAX_TEXT_LENGTH = 1024 * 1024;
type Failure = Readonly<{ message: string; place: Place | undefined }>;

/** Warnings and the mistake that ended the checks, as `result.json`, `result.txt` and `result.statuscode` have them. */
export function lintResult(
  warnings: readonly Warning[],
  { name, text }: Source,
  failure: Failure | undefined,
): ReadonlyMap<string, Buffer> {
  const json = {
    warnings: warnings.length === 0 ? null : warnings.map(shown),
    sources: [{ filename: name, data: Buffer.from(text).toString('base64'), language: 'Dockerfile' }],
    ...(failure !== undefined && {
      buildError: {
        message: failure.message,
        location: failure.place === undefined ? {} : { ranges: rangesOf(failure.place) },
      },
    }),
  };
  const lines = text.split('\n');
  let printed = '';
  for (const warning of warnings.toSorted((a, b) => a.place.number - b.place.number)) {
    printed += heading(warning);
    if (printed.length < MAX_TEXT_LENGTH) printed += excerpt({ name, lines }, warning.place);
  }
  const result = resultOf(json, printed);
  const isClean = warnings.length === 0 && failure === undefined;
  result.set('result.statuscode', Buffer.from(isClean ? '0' : '1'));
  return result;
}

function shown({ rule, detail, place }: Warning): object {
  const { name, description, url } = rule;
  const address = url === '' ? {} : { url };
  return { ruleName: name, description, ...address, detail, location: { ranges: rangesOf(place) } };
}

function heading({ rule, detail }: Warning): string {
  const address = rule.url === '' ? '' : ` - ${rule.url}`;
  return `\nWARNING: ${rule.name}${address}\n${detail}\n`;
}
