import { EngineError } from '../lib/errors.ts';

const DIRECTIVE = /^#\s*([a-zA-Z][a-zA-Z0-9]*)\s*=\s*(.+?)\s*$/;
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
    if (value !== '`' && value !== '\\') {
      throw new EngineError('invalid', `invalid escape token '${value}' does not match \` or \\`);
    }
    this.escape = value;
  }

  /** A line without the escape character at its end, which continues it. Two of them are a literal one. */
  continued(line: string): { text: string; isContinued: boolean } {
    const bare = line.replace(/[ \t]+$/, '');
    const isContinued = bare.endsWith(this.escape) && bare.at(-2) !== this.escape;
    return isContinued ? { text: bare.slice(0, -1), isContinued } : { text: line, isContinued };
  }
}
