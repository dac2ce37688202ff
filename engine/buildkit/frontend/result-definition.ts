import { sha256 } from '../../layers/chain-id.ts';
import { EngineError } from '../../lib/errors.ts';
import { Operation, type Definition } from '../messages/definition.ts';
import type { Received, Sent } from '../wire/message.ts';

const SCHEME = 'build-result://';
const IDENTIFIER = /^build-result:\/\/(sha256:[0-9a-f]{64})$/;

const NO_METADATA = new Uint8Array();

/** A result as a client hands it to another build: `contexts = { base = "target:base" }` in a file of bake. */
export function definitionOf(imageId: string): Sent<typeof Definition> {
  const source = Operation.encode({ source: { identifier: `${SCHEME}${imageId}` } });
  // The last operation only names the result, as in each graph.
  const operations = [source, Operation.encode({ inputs: [{ digest: sha256(source) }] })];
  return { operations, metadata: new Map(operations.map((each) => [sha256(each), NO_METADATA])) };
}

/** The image of such a result. Throws `notImplemented` for any other graph. */
export function imageIdIn({ operations }: Received<typeof Definition>): string {
  const [first, ...others] = operations;
  const { source, inputs } = first === undefined ? {} : Operation.decode(first);
  const [, id] = IDENTIFIER.exec(source?.identifier ?? '') ?? [];
  if (id !== undefined && inputs?.length === 0 && others.length === 1) return id;
  throw new EngineError('notImplemented', 'only results of other targets are taken as an input of a build');
}
