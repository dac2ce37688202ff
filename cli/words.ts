/** The words of the command line. The launcher hides words that Node would interpret: `= =first =second …`. */
export function wordsOf(argv: readonly string[]): string[] {
  const [, , ...words] = argv;
  return words[0] === '=' ? words.slice(1).map((word) => word.slice(1)) : words;
}
