import { EngineError } from '../lib/errors.ts';

const DIRECTIVE = /^#\s*([a-zA-Z][a-zA-Z0-9]*)\s*=\s*(.+?)\s*$/;
const KNOWN: ReadonlySet<string> = new Set(['escape', 'syntax']);

/** The `# escape=` and `# syntax=` in front of a file, and what they say about its lines. */
export class Directives {
  escape = '\\';
  readonly #seen = new Set<string>();
  #isOver = false;

  /** Looks at the first lines, until one is no directive. Throws `invalid`. */
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
    if (key !== 'escape') return; // whatever syntax is asked for, it is read here
    if (value !== '`' && value !== '\\') {
      throw new EngineError('invalid', `invalid escape token '${value}' does not match \` or \\`);
    }
    this.escape = value;
  }

  /** A line without the sign at its end that continues it. Two of them are one that is meant. */
  continued(line: string): { text: string; isContinued: boolean } {
    const bare = line.replace(/[ \t]+$/, '');
    const isContinued = bare.endsWith(this.escape) && bare.at(-2) !== this.escape;
    return isContinued ? { text: bare.slice(0, -1), isContinued } : { text: line, isContinued };
  }
}
