/** The lines of a stream; an incomplete last line is left out. Throws `tooLong()` for a line of more letters than `maxLetters`. */
export async function* lines(
  stream: AsyncIterable<Uint8Array>,
  maxLetters: number,
  tooLong: () => Error,
): AsyncGenerator<string, void> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of stream) {
    // Only the new piece is searched: a line of many megabytes comes in thousands of them.
    const [first = '', ...others] = decoder.decode(chunk, { stream: true }).split('\n');
    rest += first;
    for (const next of others) {
      yield rest;
      rest = next;
    }
    if (rest.length > maxLetters) throw tooLong();
  }
}
