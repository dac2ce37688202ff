import type { Connection } from '@gantry/client/connection.ts';

/** The value of a flag of each kind. */
export type Values = {
  boolean: boolean;
  text: string;
  list: string[];
  integer: number;
  decimal: number;
  bytes: number;
  /** In nanoseconds, as the API has it. */
  duration: number;
};
export type Kind = keyof Values;

/** The candidates of completion: names of objects, fixed words, or files. */
export type Offers =
  | 'container'
  | 'image'
  | 'volume'
  | 'network'
  | 'plugin'
  | 'node'
  | 'service'
  | 'secret'
  | 'config'
  | 'file'
  | readonly string[];

export type Flag<K extends Kind = Kind> = {
  readonly kind: K;
  readonly short?: string;
  readonly help: string;
  /** The placeholder of the value in the help. */
  readonly value?: string;
  /** The default, as a user would write it. */
  readonly initial?: string;
  /** The reason why the flag is refused: API 1.24 does not support it. */
  readonly refused?: string;
  readonly offers?: Offers;
};
export type Flags = Readonly<Record<string, Flag>>;

/** Booleans and lists are always set, the others only when given. */
export type Given<F extends Flags> = {
  readonly [N in keyof F]: F[N]['kind'] extends 'boolean' | 'list'
    ? Values[F[N]['kind']]
    : Values[F[N]['kind']] | undefined;
};

/** The context of every command: the engine, connected on first use. */
export type Context = {
  readonly connection: Connection;
  /** The engine's address, as in DOCKER_HOST. */
  readonly address: string;
};

export type Command<F extends Flags = Flags> = {
  /** The words behind the name and the flags in the usage. */
  readonly words: string;
  /** The least and the largest number of words. */
  readonly count: readonly [number, number];
  readonly flags: F;
  /** Flags end at the first word; the rest may be a command with flags of its own. */
  readonly passesOn?: boolean;
  readonly offers?: Offers;
  /** More text for the help, after the summary. */
  readonly about?: string;
  readonly examples?: readonly string[];
  /** Returns the exit code; 0 when it returns nothing. */
  run(context: Context, words: string[], flags: Given<F>): Promise<number | void>;
};

/** Gives `run` the types of its command's flags. */
export function command<const F extends Flags>(definition: Command<F>): Command {
  return definition;
}

export const MANY = Number.POSITIVE_INFINITY;
