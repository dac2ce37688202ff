export type Path = readonly (string | number)[];

/** What is wrong with a setting. */
export type Problem = Readonly<{
  path: Path;
  message: string;
  /** The key itself is wrong, not its value. */
  key?: boolean;
}>;
