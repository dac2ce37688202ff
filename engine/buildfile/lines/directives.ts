import { EngineError } from '../../lib/errors.ts';
import type { Dialect } from '../dialect.ts';

const DIRECTIVE = /^#\s*([a-zA-Z][a-zA-Z0-9]*)\s*=\s*(\S.*|\s)$/;
const KNOWN: Readonly<Record<Dialect, readonly string[]>> = {
  classic: ['escape', 'syntax'],
  buildkit: ['escape', 'syntax', 'check'],
};

export type Directive = Readonly<{ value: string; number: number }>;

/** The directives at the beginning of a file, such as `# escape=`, and the lines that they shape. */
export class Directives {
  escape = '\\';
  /** By their names. */
  readonly found = new Map<string, Directive>();
  readonly #dialect: Dialect;
  #isOver = false;

  constructor(dialect: Dialect) {
    this.#dialect = dialect;
  }

  /** Reads the directives up to the first other line; returns whether this one is a directive. Throws `invalid`. */
  look(line: string, number: number): boolean {
    if (this.#isOver) return false;
    const [, name = '', value = ''] = DIRECTIVE.exec(line) ?? [];
    const key = name.toLowerCase();
    if (!KNOWN[this.#dialect].includes(key)) {
      this.#isOver = true;
      return false;
    }
    if (this.found.has(key)) throw new EngineError('invalid', `only one ${key} parser directive can be used`);
    this.found.set(key, { value: value.trimEnd(), number });
    if (key !== 'escape') return true; // any syntax is read by this parser
    const token = value.trimEnd() || value;
    if (token !== '`' && token !== '\\') {
      throw new EngineError('invalid', `invalid escape token '${token}' does not match \` or \\`);
    }
    this.escape = token;
    return true;
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
