export type Path = readonly (string | number)[];

/** A problem of a setting. */
export type Problem = Readonly<{
  path: Path;
  message: string;
  /** The key itself is wrong, not its value. */
  key?: boolean;
}>;
