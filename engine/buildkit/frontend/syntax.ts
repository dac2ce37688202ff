import { LocatedError } from '../../buildfile/located-error.ts';
import { parseBoundedJson } from '../../lib/bounded-json.ts';
import { EngineError } from '../../lib/errors.ts';

/** Names of images with BuildKit's own language, of any version; this frontend reads it. */
const OWN = /^(?:docker\.io\/)?docker\/dockerfile(?:-upstream)?(?::[\w.-]+)?(?:@sha256:[0-9a-f]{64})?$/;
const ARGUMENT = 'build-arg:BUILDKIT_SYNTAX';
const SHEBANG = '#!';

/** Refuses a file in the language of another frontend, by the name of its image. Throws `notImplemented`. */
export function refuseOtherSyntax(text: string, attributes: ReadonlyMap<string, string>): void {
  const given = attributes.get(ARGUMENT);
  if (given !== undefined) {
    if (!OWN.test(nameIn(given))) throw refusal(nameIn(given));
    return;
  }
  const found = syntaxOf(text);
  if (found === undefined || OWN.test(nameIn(found.value))) return;
  throw new LocatedError({ number: found.number, end: found.number }, messageFor(found.value), refusal(found.value));
}

type Found = Readonly<{ value: string; number: number }>;

/** The directive `syntax` in a comment of `#` or `//`, or as a key of JSON. */
function syntaxOf(text: string): Found | undefined {
  const lines = text.replace(/^\ufeff/, '').split('\n');
  const first = lines[0]!.startsWith(SHEBANG) ? 1 : 0;
  return (
    directiveIn(lines, first, '#') ?? directiveIn(lines, first, '//') ?? keyIn(lines.slice(first).join('\n'), first + 1)
  );
}

/** Directives are the first lines; any other line ends them. */
function directiveIn(lines: readonly string[], first: number, sign: string): Found | undefined {
  for (const [index, line] of lines.entries()) {
    if (index < first) continue;
    const isComment = line.trimStart().startsWith(sign);
    const [, name = '', value = ''] =
      /^\s*([a-zA-Z][a-zA-Z0-9]*)\s*=\s*(\S.*?)\s*$/.exec(isComment ? line.trimStart().slice(sign.length) : '') ?? [];
    if (name.toLowerCase() === 'syntax') return { value, number: index + 1 };
    if (!['escape', 'check'].includes(name.toLowerCase())) return undefined;
  }
  return undefined;
}

function keyIn(text: string, number: number): Found | undefined {
  if (!text.trimStart().startsWith('{')) return undefined;
  try {
    const { syntax } = parseBoundedJson(text) as { syntax?: unknown };
    return typeof syntax === 'string' ? { value: syntax, number } : undefined;
  } catch {
    return undefined; // it is no JSON: the parser says what is wrong with it
  }
}

/** Arguments may follow the name. */
function nameIn(value: string): string {
  return value.trim().split(' ', 1)[0]!;
}

function refusal(value: string): EngineError {
  return new EngineError('notImplemented', messageFor(value));
}

function messageFor(value: string): string {
  return `the syntax ${nameIn(value)} is not part of this builder: use docker/dockerfile`;
}
