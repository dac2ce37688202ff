import type { Variables } from '../buildfile/expansion/expand.ts';
import { MAX_ARGUMENTS_LENGTH, refuseAbove } from '../buildfile/limits.ts';

/** Known without ARG, and left out of the history unless a file names them. */
const PREDEFINED: readonly string[] = [
  ...['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'https_proxy'],
  ...['FTP_PROXY', 'ftp_proxy', 'NO_PROXY', 'no_proxy'],
];

type Values = Map<string, string | undefined>;
/** The client's; null: a name without a value. */
export type GivenArgs = Readonly<Record<string, string | null>>;

type Given = Readonly<{ args: GivenArgs; automaticArgs: Readonly<Record<string, string>> }>;

/** The build arguments of one stage. Those in front of the first FROM count only where the stage names them. */
export class BuildArgs {
  readonly #given: Given;
  readonly #global: Values;
  readonly #isGlobal: boolean;
  readonly #own: Values = new Map();
  #length = 0;

  /** `global`: for a stage. */
  constructor(given: Given, global?: Values) {
    this.#given = given;
    this.#isGlobal = global === undefined;
    this.#global = global ?? new Map();
  }

  /** For a stage behind these. */
  forStage(): BuildArgs {
    return new BuildArgs(this.#given, new Map([...this.#global, ...this.#own]));
  }

  /** Takes over the arguments of an earlier stage, as BuildKit does for one that is based on it. */
  inherit(earlier: BuildArgs): void {
    for (const [name, value] of earlier.#own) this.add(name, value);
  }

  /** ARG. Throws `invalid` beyond the limit of all together. */
  add(name: string, value: string | undefined): void {
    const before = this.#own.has(name) ? lengthOf(name, this.#own.get(name)) : 0;
    this.#length += lengthOf(name, value) - before;
    refuseAbove(MAX_ARGUMENTS_LENGTH, this.#length, 'the list of build arguments', 'characters');
    this.#own.set(name, value);
  }

  /** The values so far, for expansions. */
  get values(): Variables {
    return {
      get: (name) => (this.#own.has(name) || this.#isKnown(name) ? this.#valueOf(name, this.#own) : undefined),
    };
  }

  /** Those that are not variables of the image, as `NAME=value`. */
  visible(environment: readonly string[]): string[] {
    const taken = new Set(environment.map((entry) => entry.split('=', 1)[0]));
    return this.#entries(this.#own).filter((entry) => !taken.has(entry.split('=', 1)[0]));
  }

  /** For the lines of FROM. */
  globals(): string[] {
    const { automaticArgs } = this.#given;
    return this.#entries(new Map([...Object.entries(automaticArgs), ...this.#global, ...this.#own]));
  }

  /** Those that the history names. */
  recorded(visible: readonly string[]): string[] {
    const isHidden = (name: string): boolean => PREDEFINED.includes(name) && !this.#own.has(name);
    return visible.filter((entry) => !isHidden(entry.split('=', 1)[0]!)).toSorted(byBytes);
  }

  /** Those of the platform are known in front of the first FROM alone; a stage asks for them by ARG. */
  #isKnown(name: string): boolean {
    return PREDEFINED.includes(name) || (this.#isGlobal && Object.hasOwn(this.#given.automaticArgs, name));
  }

  /** The names of the stage's own, in the order of the file. */
  get declared(): string[] {
    return [...this.#own.keys()];
  }

  valueOf(name: string): string | undefined {
    return this.#valueOf(name, this.#own);
  }

  #entries(values: Values): string[] {
    return [...new Set([...values.keys(), ...PREDEFINED])].flatMap((name) => {
      const value = this.#valueOf(name, values);
      return value === undefined ? [] : [`${name}=${value}`];
    });
  }

  #valueOf(name: string, values: Values): string | undefined {
    const { args, automaticArgs } = this.#given;
    const given = Object.hasOwn(args, name) ? args[name] : undefined;
    const automatic = Object.hasOwn(automaticArgs, name) ? automaticArgs[name] : undefined;
    return given ?? values.get(name) ?? this.#global.get(name) ?? automatic;
  }
}

/** The names without an ARG, in order. */
export function unusedArgs(given: GivenArgs, asked: ReadonlySet<string>): string[] {
  return Object.keys(given).filter((name) => !asked.has(name) && !PREDEFINED.includes(name));
}

function lengthOf(name: string, value = ''): number {
  return name.length + value.length;
}

function byBytes(a: string, b: string): number {
  return a < b ? -1 : 1;
}
