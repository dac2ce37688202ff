import { EngineError } from '../lib/errors.ts';

const DIRECTIVE = /^#\s*([a-zA-Z][a-zA-Z0-9]*)\s*=\s*(\S.*|\s)$/;
const KNOWN: ReadonlySet<string> = new Set(['escape', 'syntax']);

/** The directives `# escape=` and `# syntax=` at the beginning of a file, and the lines that they shape. */
export class Directives {
  escape = '\\';
  readonly #seen = new Set<string>();
  #isOver = false;

  /** Reads the directives up to the first other line. Throws `invalid`. */
  look(line: string): void {
    if (this.#isOver) return;
    const [, name = '', value = ''] = DIRECTIVE.exec(line) ?? [];
    const key = name.toLowerCase();
    if (!KNOWN.has(key)) {
      this.#isOver = true;
      return;
    }
    if (this.#seen.has(key)) throw new EngineError('invalid', `only one ${key} parser directive can be used`);
    this.#seen.add(key);
    if (key !== 'escape') return; // any syntax is read by this parser
    const token = value.trimEnd() || value;
    if (token !== '`' && token !== '\\') {
      throw new EngineError('invalid', `invalid escape token '${token}' does not match \` or \\`);
    }
    this.escape = token;
  }

  /** A line without the escape character at its end, which continues it. Two of them are a literal one. */
  continued(line: string): { text: string; isContinued: boolean } {
    let end = line.length;
    while (line[end - 1] === ' ' || line[end - 1] === '\t') end -= 1;
    const bare = line.slice(0, end);
    const isContinued = bare.endsWith(this.escape) && bare.at(-2) !== this.escape;
    return isContinued ? { text: bare.slice(0, -1), isContinued } : { text: line, isContinued };
  }
}
