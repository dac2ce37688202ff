import { visible } from '../output/escape.ts';

type ProgressLine = { status?: string; stream?: string; id?: string; progress?: string };

/** The width of a terminal that does not report one. */
const WIDTH = 80;
/** Numbers that change many times a second are useless in a file. */
const MOVING = /^(Downloading|Extracting|Pushing)$/;

/** Shows the progress of a transfer: a line per layer that changes on a terminal, plain lines elsewhere. */
export function progressOn(output: NodeJS.WriteStream): (line: ProgressLine) => void {
  return output.isTTY ? drawnOn(output) : plainOn(output);
}

function plainOn(output: NodeJS.WriteStream): (line: ProgressLine) => void {
  return (line) => {
    const text = textOf(line);
    if (text !== '' && !MOVING.test(line.status ?? '')) output.write(`${text}\n`);
  };
}

/** Layers keep their rows; a line without an id ends the block of rows, as docker draws it. */
function drawnOn(output: NodeJS.WriteStream): (line: ProgressLine) => void {
  let rows: string[] = [];
  return (line) => {
    const text = textOf(line).slice(0, (output.columns || WIDTH) - 1);
    if (text === '') return;
    const { id } = line;
    if (id === undefined || line.status?.startsWith('Pulling from') === true) {
      rows = [];
      output.write(`${text}\n`);
      return;
    }
    const at = rows.indexOf(id);
    if (at < 0) {
      rows.push(id);
      output.write(`${text}\n`);
      return;
    }
    const up = rows.length - at;
    output.write(`\u001B[${up}A\r\u001B[2K${text}\r\u001B[${up}B`);
  };
}

function textOf({ status, stream, id, progress }: ProgressLine): string {
  const said = (stream ?? status ?? '').trimEnd();
  if (said === '') return '';
  const whole = progress ? `${said} ${progress}` : said;
  return visible(id === undefined ? whole : `${id}: ${whole}`);
}
