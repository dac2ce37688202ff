/** Known without ARG, and left out of the history unless a file names them. */
const PREDEFINED: readonly string[] = [
  ...['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'https_proxy'],
  ...['FTP_PROXY', 'ftp_proxy', 'NO_PROXY', 'no_proxy'],
];

type Values = Map<string, string | undefined>;
/** The client's; null: a name without a value. */
export type GivenArgs = Readonly<Record<string, string | null>>;

/** The build arguments of one stage. Those in front of the first FROM count only where the stage names them. */
export class BuildArgs {
  readonly #given: GivenArgs;
  readonly #global: Values;
  readonly #own: Values = new Map();

  constructor(given: GivenArgs, global: Values = new Map()) {
    this.#given = given;
    this.#global = global;
  }

  /** For a stage behind these. */
  forStage(): BuildArgs {
    return new BuildArgs(this.#given, new Map([...this.#global, ...this.#own]));
  }

  /** ARG. */
  add(name: string, value: string | undefined): void {
    this.#own.set(name, value);
  }

  /** Those that are not variables of the image, as `NAME=value`. */
  visible(environment: readonly string[]): string[] {
    const taken = new Set(environment.map((entry) => entry.split('=', 1)[0]));
    return this.#entries(this.#own).filter((entry) => !taken.has(entry.split('=', 1)[0]));
  }

  /** For the lines of FROM. */
  globals(): string[] {
    return this.#entries(this.#global.size === 0 ? this.#own : this.#global);
  }

  /** Those that the history names. */
  recorded(visible: readonly string[]): string[] {
    const isHidden = (name: string): boolean => PREDEFINED.includes(name) && !this.#own.has(name);
    return visible.filter((entry) => !isHidden(entry.split('=', 1)[0]!)).toSorted(byBytes);
  }

  #entries(values: Values): string[] {
    return [...new Set([...values.keys(), ...PREDEFINED])].flatMap((name) => {
      const value = this.#valueOf(name, values);
      return value === undefined ? [] : [`${name}=${value}`];
    });
  }

  #valueOf(name: string, values: Values): string | undefined {
    const given = Object.hasOwn(this.#given, name) ? this.#given[name] : undefined;
    return given ?? values.get(name) ?? this.#global.get(name);
  }
}

/** The names without an ARG, in order. */
export function unusedArgs(given: GivenArgs, asked: ReadonlySet<string>): string[] {
  return Object.keys(given).filter((name) => !asked.has(name) && !PREDEFINED.includes(name));
}

function byBytes(a: string, b: string): number {
  return a < b ? -1 : 1;
}
