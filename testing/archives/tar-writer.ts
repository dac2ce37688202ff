const BLOCK = 512;
const PADDING = Buffer.alloc(BLOCK);

const typeFlags = {
  file: '0',
  link: '1',
  symlink: '2',
  charDevice: '3',
  blockDevice: '4',
  directory: '5',
  fifo: '6',
  pax: 'x',
  globalPax: 'g',
  longName: 'L',
  longLink: 'K',
} as const;

export type TarEntry = {
  name: string;
  type?: keyof typeof typeFlags;
  content?: string | Uint8Array;
  mode?: number;
  uid?: number;
  gid?: number;
  mtime?: number;
  linkName?: string;
  major?: number;
  minor?: number;
  /** Default `ustar`. `v7` has no magic, and no device numbers. */
  magic?: 'ustar' | 'gnu' | 'v7';
  /** The folder part of a long name, which only `ustar` has. */
  prefix?: string;
  /** Extended header that comes before the entry, such as `{ 'SCHILY.xattr.user.a': 'b' }`. */
  pax?: Readonly<Record<string, string | Uint8Array>>;
  /** The size field, if it shall differ from the content's. */
  size?: number;
  /** Changes the finished header without a new checksum. */
  damage?: (header: Buffer) => void;
};

/** Writes tar archives for tests, including invalid ones that no program would write. */
export class TarWriter {
  readonly #parts: Buffer[] = [];

  add(entry: TarEntry): this {
    const content = Buffer.from(entry.content ?? '');
    if (entry.pax !== undefined) {
      this.add({ name: 'PaxHeaders/entry', type: 'pax', content: paxRecords(entry.pax) });
    }
    if (Buffer.byteLength(entry.name) > 100)
      this.add({ name: '././@LongLink', type: 'longName', content: `${entry.name}\0` });
    if (Buffer.byteLength(entry.linkName ?? '') > 100) {
      this.add({ name: '././@LongLink', type: 'longLink', content: `${entry.linkName}\0` });
    }
    this.#parts.push(header(entry, content.length), content, PADDING.subarray(0, -content.length & (BLOCK - 1)));
    return this;
  }

  /** Raw bytes, such as half a header. */
  addRaw(bytes: Uint8Array): this {
    this.#parts.push(Buffer.from(bytes));
    return this;
  }

  /** The archive with its end mark. */
  end(): Buffer {
    return Buffer.concat([...this.#parts, Buffer.alloc(2 * BLOCK)]);
  }

  /** The archive without its end mark. */
  cut(): Buffer {
    return Buffer.concat(this.#parts);
  }
}

/** The records of a pax extended header: `length key=value\n`, the length counting itself. */
export function paxRecords(values: Readonly<Record<string, string | Uint8Array>>): Buffer {
  const records = Object.entries(values).map(([key, value]) => {
    const rest = Buffer.concat([Buffer.from(` ${key}=`), Buffer.from(value), Buffer.from('\n')]);
    let length = rest.length + 1;
    while (String(length).length + rest.length !== length) length = String(length).length + rest.length;
    return Buffer.concat([Buffer.from(String(length)), rest]);
  });
  return Buffer.concat(records);
}

function header(entry: TarEntry, contentBytes: number): Buffer {
  const bytes = Buffer.alloc(BLOCK);
  const type = entry.type ?? 'file';
  const octal = (value: number, offset: number, digits: number): void => {
    bytes.write(`${value.toString(8).padStart(digits, '0')}\0`, offset, 'latin1');
  };
  bytes.write(entry.name, 0, 100);
  octal(entry.mode ?? (type === 'directory' ? 0o755 : 0o644), 100, 7);
  octal(entry.uid ?? 0, 108, 7);
  octal(entry.gid ?? 0, 116, 7);
  octal(entry.size ?? contentBytes, 124, 11);
  octal(entry.mtime ?? 1_700_000_000, 136, 11);
  bytes.write('        ', 148, 'latin1');
  bytes.write(typeFlags[type], 156, 'latin1');
  bytes.write(entry.linkName ?? '', 157, 100);
  const magic = entry.magic ?? 'ustar';
  bytes.write({ ustar: 'ustar\u000000', gnu: 'ustar  \0', v7: '' }[magic], 257, 'latin1');
  if (magic !== 'v7') {
    octal(entry.major ?? 0, 329, 7);
    octal(entry.minor ?? 0, 337, 7);
  }
  bytes.write(entry.prefix ?? '', 345, 155);
  let sum = 0;
  for (let at = 0; at < BLOCK; at += 1) sum += bytes[at]!; // tests write 100,000 entries: `reduce` takes most of their time
  bytes.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  entry.damage?.(bytes);
  return bytes;
}
