import { UsageError } from '../exit-codes.ts';
import { visibleLines } from './escape.ts';
import { tableText } from './table.ts';

/** A row of a list: its fields under the names that templates use. */
export type Row = Readonly<Record<string, string | ((word: string) => string)>>;

/** A list as `--format` shows it: `table`, `table TEMPLATE`, `json` or a template for each row. */
type Listing = {
  /** The fields for templates, and the titles of their columns. */
  readonly titles: Readonly<Record<string, string>>;
  /** The fields of the table without a format. */
  readonly columns: readonly string[];
  readonly rows: readonly Row[];
};

export async function printList(listing: Listing, format: string | undefined): Promise<void> {
  for (const text of await listTexts(listing, format)) console.log(text);
}

/** The table as one text, or a text for each row. */
export async function listTexts(listing: Listing, format: string | undefined): Promise<string[]> {
  const { titles, columns, rows } = listing;
  if (format === undefined || format === '' || format === 'table') {
    const cells = rows.map((row) => columns.map((name) => String(row[name])));
    return [
      tableText(
        columns.map((name) => titles[name]!),
        cells,
      ),
    ];
  }
  if (format === 'json') return rows.map((row) => JSON.stringify(row));
  const table = /^table\s+([^]*)$/.exec(format)?.[1];
  if (table === undefined) {
    const line = await template(format, valueText);
    return rows.map((row) => line(row));
  }
  const cells = await template(table);
  const head = cells({ ...titles, Label: (name: string) => name }).split('\t');
  return [
    tableText(
      head,
      rows.map((row) => padCells(cells(row).split('\t'), head.length)),
    ),
  ];
}

/** Whole objects: one line of the template each, or all of them as one JSON text, in one line for `json`. */
export async function printObjects(objects: readonly unknown[], format: string | undefined): Promise<void> {
  if (format === undefined || format === '') {
    console.log(JSON.stringify(objects, undefined, 4));
    return;
  }
  if (format === 'json') await printObject(objects, format);
  else for (const object of objects) await printObject(object, format);
}

export async function printObject(object: unknown, format: string): Promise<void> {
  if (format === 'json') {
    console.log(JSON.stringify(object));
    return;
  }
  console.log((await template(format, valueText))(object));
}

/** A template that is wrong is a wrong command line. */
async function template(text: string, shown?: (value: string) => string): Promise<(value: unknown) => string> {
  const { compileTemplate } = await import('@gantry/template/run.ts');
  const { TemplateError } = await import('@gantry/template/error.ts');
  const usage = <T>(work: () => T): T => {
    try {
      return work();
    } catch (error) {
      throw error instanceof TemplateError ? new UsageError(error.message) : error;
    }
  };
  const filled = usage(() => compileTemplate(unescapeFormat(text), shown));
  return (value) => usage(() => filled(value));
}

/** Programs get the bytes unchanged; on a terminal, control characters are made visible. */
function valueText(text: string): string {
  return process.stdout.isTTY ? visibleLines(text) : text;
}

/** People write `\t` and `\n` into the shell's single quotes. */
function unescapeFormat(format: string): string {
  return format.replaceAll('\\t', '\t').replaceAll('\\n', '\n');
}

function padCells(cells: readonly string[], length: number): string[] {
  return Array.from({ length }, (_, at) => cells[at] ?? '');
}
