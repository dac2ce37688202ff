/** SQL for a table of records, for a step of `Database.migrate`. */
export function createTable(name: string): string {
  return `CREATE TABLE ${name} (
     position INTEGER PRIMARY KEY,
     id TEXT NOT NULL UNIQUE,
     version INTEGER NOT NULL,
     record TEXT NOT NULL
   ) STRICT;`;
}

/** A column of nanoseconds since 1970, a number or its text, as a record has an instant. Any other text stays what it is. */
export function instantOf(column: string): string {
  return `CASE
     WHEN ${column} IS NULL THEN NULL
     WHEN ${column} GLOB '*[^0-9]*' OR length(${column}) > 19 THEN ${column}
     ELSE strftime('%Y-%m-%dT%H:%M:%S', CAST(${column} AS INTEGER) / 1000000000, 'unixepoch')
       || printf('.%09dZ', CAST(${column} AS INTEGER) % 1000000000)
   END`;
}

/** A column of JSON as a part of a record. Anything but JSON becomes text: no schema accepts it, but it is not lost. */
export function jsonOf(column: string): string {
  return `CASE WHEN json_valid(${column}) THEN json(${column}) ELSE ${column} END`;
}

/** A record as JSON, of names and SQL; NULL values are left out. */
export function recordOf(fields: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(fields).map(([name, sql]) => `'${name}', ${sql}`);
  return `json_patch('{}', json_object(${pairs.join(', ')}))`;
}
