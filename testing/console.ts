/** A command of a page with the output that the page shows; `host` is the name in its prompt, empty for `$`. */
export type Command = Readonly<{ host: string; text: string; shown: string }>;

const BLOCK = /```console\n([^]*?)```/g;
const PROMPT = /^(?<host>\w*)\$ (?<text>.*)$/;

/** The commands in the `console` blocks of a page, in order. A here-document belongs to its command. */
export function commandsOf(page: string): Command[] {
  return [...page.matchAll(BLOCK)].flatMap(([, block = '']) => commandsOfBlock(block.split('\n').slice(0, -1)));
}

function commandsOfBlock(lines: string[]): Command[] {
  const commands: Command[] = [];
  while (lines.length > 0) {
    const { host = '', text = '' } = PROMPT.exec(lines.shift()!)?.groups ?? {};
    const ending = /<<'(\w+)'/.exec(text)?.[1];
    const document = ending === undefined ? [] : lines.splice(0, lines.indexOf(ending) + 1);
    const end = lines.findIndex((line) => PROMPT.test(line));
    const shown = lines.splice(0, end < 0 ? lines.length : end);
    commands.push({ host, text: [text, ...document].join('\n'), shown: shown.join('\n') });
  }
  return commands;
}

/** Matches output as a page shows it: `…` is any text. */
export function patternOf(shown: string): RegExp {
  return new RegExp(
    `^${shown
      .split('…')
      .map((text) => RegExp.escape(text))
      .join('[^]*')}$`,
  );
}
