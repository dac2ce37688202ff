import type { Connection } from '@gantry/client/connection.ts';

/** What a flag of each kind carries. */
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

/** What completion offers: names of such objects, the words themselves, or files. */
export type Offers = 'container' | 'image' | 'volume' | 'network' | 'file' | readonly string[];

export type Flag<K extends Kind = Kind> = {
  readonly kind: K;
  readonly short?: string;
  readonly help: string;
  /** Stands for the value in the help. */
  readonly value?: string;
  /** The value when the flag is not given, as a user would write it. */
  readonly initial?: string;
  /** Why the flag cannot be used: API 1.24 has nothing for it. */
  readonly refused?: string;
  readonly offers?: Offers;
};
export type Flags = Readonly<Record<string, Flag>>;

/** Booleans and lists are always there, the others when they were given. */
export type Given<F extends Flags> = {
  readonly [N in keyof F]: F[N]['kind'] extends 'boolean' | 'list'
    ? Values[F[N]['kind']]
    : Values[F[N]['kind']] | undefined;
};

/** What every command gets: the engine, opened when it is first used. */
export type Context = {
  readonly connection: Connection;
  /** Where the engine is, as it would be written in DOCKER_HOST. */
  readonly address: string;
};

export type Command<F extends Flags = Flags> = {
  /** What follows the name and the flags in the usage. */
  readonly words: string;
  /** How many words: the fewest and the most. */
  readonly count: readonly [number, number];
  readonly flags: F;
  /** The flags end at the first word: the rest may be a command with flags of its own. */
  readonly passesOn?: boolean;
  readonly offers?: Offers;
  /** More than the summary, for the help. */
  readonly about?: string;
  readonly examples?: readonly string[];
  /** Returns the exit code; 0 when it returns nothing. */
  run(context: Context, words: string[], flags: Given<F>): Promise<number | void>;
};

/** Ties the flags of a command to what its `run` is given. */
export function command<const F extends Flags>(definition: Command<F>): Command {
  return definition;
}

export const MANY = Number.POSITIVE_INFINITY;
