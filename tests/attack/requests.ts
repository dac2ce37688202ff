import type { Dice } from './random.ts';

type Schema = {
  type?: string | string[];
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  items?: Schema;
  anyOf?: Schema[];
  enum?: unknown[];
};
type Parameter = { name: string; in: string; schema: Schema };
type Operation = {
  parameters?: Parameter[];
  requestBody?: { content: Record<string, { schema: Schema }> };
};

/** The part of `/openapi.json` that requests are made from. */
export type OpenApi = { paths: Record<string, Record<string, Operation>> };

export type Attempt = { method: string; path: string; headers: Record<string, string>; body: Buffer };

/** The commands for containers of an attack: they must not harm the machine under any settings. */
const COMMANDS = [['true'], ['sleep', '1000'], ['cat'], ['sh', '-c', 'echo out; echo err >&2; exit 3'], ['/nope'], []];

const TEXTS = [
  '',
  '0',
  '1',
  '-1',
  'true',
  'null',
  '/',
  '..',
  '../../etc/passwd',
  '/../../proc/self/mem',
  '%00',
  '%2e%2e%2f',
  '\u0000',
  '\n\r\nHost: x',
  'ä💥\ud800',
  'busybox',
  'busybox:latest',
  'sha256:',
  `sha256:${'0'.repeat(64)}`,
  'a'.repeat(300),
  'b'.repeat(9000),
  '{}',
  '[]',
  '{"name":["(a+)+$"]}',
  '{"label":["x=y"],"status":["running"]}',
  '{"dangling":{"true":true}}',
  '__proto__',
  'constructor',
  '80/tcp',
  '1-70000',
  '127.0.0.1',
  'host',
  'none',
  'bridge',
  'container:attacked-0',
  '4294967295',
  '2038-01-19T03:14:08Z',
  'SIGKILL',
  'ctrl-p,ctrl-q',
];
const NUMBERS = [0, 1, -1, 2, 10, 100, 0.5, 2 ** 31, 2 ** 32 - 1, 2 ** 53, -(2 ** 63), 1e300];

/**
 * Keys that always reach beyond a container: cgroups elsewhere, sysctls of the machine. All else of the schema is
 * tried.
 */
const KEPT_OUT = new Set(['CgroupParent', 'Sysctls', 'fromSrc', 'remote']);

/** Endless requests over all endpoints that an engine documents, most of them nearly right. */
export class RequestSource {
  readonly #dice: Dice;
  readonly #names: readonly string[];
  readonly #cgroupParent: string;
  readonly #operations: (readonly [method: string, path: string, operation: Operation])[];

  constructor(document: OpenApi, dice: Dice, names: readonly string[], cgroupParent: string) {
    this.#dice = dice;
    this.#names = names;
    this.#cgroupParent = cgroupParent;
    this.#operations = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => [method.toUpperCase(), path, operation] as const),
    );
  }

  next(): Attempt {
    const dice = this.#dice;
    const [method, path, operation] = dice.pick(this.#operations);
    const body = this.#body(path, operation);
    const headers: Record<string, string> = {};
    if (body.length > 0) headers['Content-Type'] = dice.chance(0.95) ? 'application/json' : this.#headerText();
    if (dice.chance(0.1))
      Object.assign(headers, { Connection: 'Upgrade', Upgrade: dice.pick(['tcp', 'websocket', 'h2c']) });
    if (dice.chance(0.05)) headers[dice.pick(['X-Registry-Auth', 'Accept', 'Host', 'Origin'])] = this.#headerText();
    return {
      method: dice.chance(0.97) ? method : dice.pick(['GET', 'POST', 'PUT', 'DELETE', 'HEAD', 'PATCH', 'OPTIONS']),
      path: `${this.#prefix()}${this.#filled(path)}${this.#query(operation)}`,
      headers,
      body,
    };
  }

  /** The bytes of a request with some of them changed, cut out or doubled. */
  damaged(): Buffer {
    const { method, path, headers, body } = this.next();
    const lines = Object.entries({ Host: 'x', 'Content-Length': String(body.length), ...headers });
    const head = [`${method} ${path} HTTP/1.1`, ...lines.map(([key, value]) => `${key}: ${value}`)].join('\r\n');
    return mutated(Buffer.concat([Buffer.from(`${head}\r\n\r\n`), body]), this.#dice);
  }

  #prefix(): string {
    return this.#dice.chance(0.9) ? '/v1.24' : this.#dice.pick(['', '/v1.12', '/v1.99', '/v1.24/v1.24', '//', '/v']);
  }

  #filled(path: string): string {
    return path.replaceAll(/\{\w+\}/g, () => {
      const known = this.#dice.chance(0.75);
      return known ? this.#dice.pick(this.#names) : encoded(this.#text());
    });
  }

  #query(operation: Operation): string {
    const known = (operation.parameters ?? []).filter((parameter) => parameter.in === 'query');
    const chosen = this.#dice.some(known, Math.min(known.length, 4)).filter(({ name }) => !KEPT_OUT.has(name));
    const pairs = chosen.map(({ name, schema }) => `${name}=${encoded(textOf(this.#value(schema, 0)))}`);
    if (this.#dice.chance(0.05)) pairs.push(`${encoded(this.#text())}=${encoded(this.#text())}`);
    return pairs.length === 0 ? '' : `?${pairs.join('&')}`;
  }

  #body(path: string, operation: Operation): Buffer {
    const schema = operation.requestBody?.content['application/json']?.schema;
    if (schema === undefined) return this.#dice.chance(0.05) ? Buffer.from(this.#text()) : Buffer.alloc(0);
    if (this.#dice.chance(0.02)) return Buffer.from(this.#text());
    const value = this.#value(schema, 0);
    if (typeof value !== 'object' || value === null) return Buffer.from(JSON.stringify(value) ?? '');
    const body = value as Record<string, unknown>;
    if (path.endsWith('/create') || path.endsWith('/exec')) this.#tame(body);
    const text = JSON.stringify(body);
    return this.#dice.chance(0.98) ? Buffer.from(text) : mutated(Buffer.from(text), this.#dice);
  }

  /** A command that does no harm, and a place for its cgroup that the test looks after. */
  #tame(body: Record<string, unknown>): void {
    body.Cmd = this.#dice.pick(COMMANDS);
    body.Entrypoint = this.#dice.chance(0.9) ? null : [];
    body.Image = this.#dice.chance(0.95) ? 'busybox' : this.#text();
    const host = body.HostConfig;
    body.HostConfig = { ...(typeof host === 'object' ? host : {}), CgroupParent: this.#cgroupParent };
  }

  /** Mostly a value of the schema, of few fields, else anything. */
  #value(schema: Schema, depth: number): unknown {
    const dice = this.#dice;
    if (dice.chance(0.06)) return this.#anything(depth);
    if (schema.enum !== undefined) return dice.pick(schema.enum);
    if (schema.anyOf !== undefined) return this.#value(dice.pick(schema.anyOf), depth);
    const type = Array.isArray(schema.type) ? dice.pick(schema.type) : schema.type;
    switch (type ?? 'any') {
      case 'object':
        return this.#object(schema, depth);
      case 'array':
        return Array.from({ length: dice.upTo(3) }, () => this.#value(schema.items ?? {}, depth + 1));
      case 'string':
        return this.#text();
      case 'integer':
      case 'number':
        return dice.pick(NUMBERS);
      case 'boolean':
        return dice.chance(0.5);
      case 'null':
        return null;
      default:
        return this.#anything(depth);
    }
  }

  #object(schema: Schema, depth: number): Record<string, unknown> {
    const known = Object.entries(schema.properties ?? {}).filter(([key]) => !KEPT_OUT.has(key));
    const result: Record<string, unknown> = {};
    if (known.length > 0) {
      for (const [key, value] of this.#dice.some(known, 3)) result[key] = this.#value(value, depth + 1);
    }
    const others = schema.additionalProperties;
    if (typeof others === 'object') {
      for (let count = this.#dice.upTo(3); count > 0; count -= 1) result[this.#text()] = this.#value(others, depth + 1);
    }
    return result;
  }

  #anything(depth: number): unknown {
    const dice = this.#dice;
    if (depth < 4 && dice.chance(0.2)) return [this.#anything(depth + 1)];
    if (depth < 4 && dice.chance(0.2)) return { [this.#text()]: this.#anything(depth + 1) };
    return dice.pick<unknown>([null, true, false, this.#text(), dice.pick(NUMBERS)]);
  }

  #text(): string {
    return this.#dice.chance(0.2) ? this.#dice.pick(this.#names) : this.#dice.pick(TEXTS);
  }

  /** The values of a header that Node's client sends. */
  #headerText(): string {
    return this.#text().replaceAll(/[^\x20-\x7e]/g, '?');
  }
}

/** One to eight changes of bytes: other values, gaps, repetitions. */
export function mutated(bytes: Buffer, dice: Dice): Buffer {
  let result = Buffer.from(bytes);
  for (let count = 1 + dice.upTo(8); count > 0 && result.length > 0; count -= 1) {
    const at = dice.upTo(result.length);
    const length = 1 + dice.upTo(Math.min(64, result.length - at));
    const [before, piece, behind] = [
      result.subarray(0, at),
      result.subarray(at, at + length),
      result.subarray(at + length),
    ];
    switch (dice.upTo(4)) {
      case 0:
        result[at] = dice.upTo(256);
        break;
      case 1:
        result = Buffer.concat([before, behind]);
        break;
      case 2:
        result = Buffer.concat([before, piece, piece, behind]);
        break;
      default:
        result = Buffer.concat([before, Buffer.from(dice.pick(TEXTS)), behind]);
    }
  }
  return result;
}

function encoded(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
