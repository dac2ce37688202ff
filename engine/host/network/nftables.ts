import { constants } from 'node:os';

import { loadLibrary, SystemError } from '../libc.ts';
import { withoutSignals } from '../signals.ts';
import { readAttributes, type Netlink } from './netlink.ts';

/** Address of a `struct nft_ctx`. */
type Context = bigint;

const library = loadLibrary('libnftables.so.1');

const contextNew = library<[number], Context | null>('void *nft_ctx_new(uint32_t flags)');
const contextFree = library<[Context], void>('void nft_ctx_free(void *context)');
const bufferOutput = library<[Context], number>('int nft_ctx_buffer_output(void *context)');
const bufferError = library<[Context], number>('int nft_ctx_buffer_error(void *context)');
const outputBuffer = library<[Context], string>('const char *nft_ctx_get_output_buffer(void *context)');
const errorBuffer = library<[Context], string>('const char *nft_ctx_get_error_buffer(void *context)');
const setOutputFlags = library<[Context, number], void>('void nft_ctx_output_set_flags(void *context, uint32_t flags)');
const runCommand = library<[Context, string], number>(
  'int nft_run_cmd_from_buffer(void *context, const char *command)',
);

/** Not `echo`, 1 << 5: with it each change reads all elements of all sets before. */
const OUTPUT = { handle: 1 << 3, json: 1 << 4, numericAll: (1 << 7) | (1 << 8) | (1 << 9) | (1 << 10) } as const;

/**
 * libnftables in this process: 0.1 ms for a change where a spawned `nft` takes 5 ms.
 *
 * Like a netlink socket it belongs to the network namespace in which it was made.
 */
export class Nftables implements Disposable {
  #context: Context | null;

  constructor() {
    const context = contextNew(0);
    if (context === null) throw new SystemError('nft_ctx_new', [], constants.errno.ENOMEM);
    this.#context = context;
    bufferOutput(context);
    bufferError(context);
    setOutputFlags(context, OUTPUT.json | OUTPUT.handle | OUTPUT.numericAll);
  }

  /**
   * Runs commands in nft's language as one transaction: all of them take effect, or none. A refusal throws `NftError`.
   */
  run(commands: string): string {
    if (this.#context === null) throw new Error('nftables is closed');
    const context = this.#context;
    // A signal would interrupt its wait for the kernel's answer, and it would report a committed transaction as failed.
    const isDone = withoutSignals(() => runCommand(context, commands) === 0);
    // Both are read in any case: the rest of a buffer would be part of the next answer.
    const [output, errors] = [outputBuffer(context), errorBuffer(context)];
    if (!isDone) throw new NftError(commands, errors);
    return output;
  }

  /** The answer of a `list` command, in the schema of libnftables-json(5). `undefined` if the object does not exist. */
  list(command: string): readonly NftObject[] | undefined {
    try {
      const output = this.run(command);
      return output === '' ? [] : (JSON.parse(output) as { nftables: NftObject[] }).nftables;
    } catch (error) {
      if (error instanceof NftError && error.code === 'ENOENT') return undefined;
      throw error;
    }
  }

  [Symbol.dispose](): void {
    if (this.#context === null) return;
    contextFree(this.#context);
    this.#context = null;
  }
}

export type NftRule = Readonly<{ family: string; table: string; chain: string; handle: number; comment?: string }>;
type NftChain = Readonly<{
  family: string;
  table: string;
  name: string;
  hook?: string;
  type?: string;
  policy?: 'accept' | 'drop';
}>;

/** One object of a listing; its key says what it is. */
export type NftObject = Readonly<{
  rule?: NftRule;
  chain?: NftChain;
  table?: Readonly<{ family: string; name: string }>;
  set?: Readonly<{ name: string; elem?: readonly unknown[] }>;
  map?: Readonly<{ name: string; elem?: readonly unknown[] }>;
}>;

/** A failed nft command. `code` is `ENOENT`, `EEXIST`, … where the library's message names it, else empty. */
export class NftError extends Error {
  readonly code: string;
  readonly commands: string;

  constructor(commands: string, output: string) {
    super(`nft: ${output.trim()}`);
    this.name = 'NftError';
    this.commands = commands;
    // The library gives the reason as text only: strerror's, which never changes.
    this.code = Object.entries(SENTENCES).find(([sentence]) => output.includes(sentence))?.[1] ?? '';
  }
}

const SENTENCES: Readonly<Record<string, string>> = {
  'No such file or directory': 'ENOENT',
  'File exists': 'EEXIST',
  'Operation not permitted': 'EPERM',
  'Device or resource busy': 'EBUSY',
  'Operation not supported': 'EOPNOTSUPP',
};

const NFT_MSG_GETGEN = (10 << 8) | 16;
const NFTA_GEN_ID = 1;

/**
 * The kernel's generation number of the packet rules in the socket's namespace, which rises with every change by any
 * program: 0.02 ms to learn that nothing changed. `netfilter` is a socket of that protocol.
 */
export function ruleGeneration(netfilter: Netlink): number {
  const [answer] = netfilter.query({
    type: NFT_MSG_GETGEN,
    flags: 0,
    body: Buffer.alloc(4),
    call: 'NFT_MSG_GETGEN',
    values: [],
  });
  return readAttributes(answer!, 4).get(NFTA_GEN_ID)?.readUInt32BE() ?? 0;
}
