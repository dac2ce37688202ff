import {
  type DocumentNode,
  type FragmentDefinitionNode,
  Kind,
  type OperationDefinitionNode,
  parse,
  type SelectionSetNode,
} from 'graphql/language';

import type { Config } from '../config/schema.ts';
import { graphqlKind, type GraphqlRequest, requestsOf } from './graphql.ts';

/** A longer document counts as unreadable: parsing it costs the gateway milliseconds. */
const MAX_TOKENS = 10_000;
const MAX_POINTS = 1_000_000;
/** A longer body counts as unreadable: it is not held in memory, nor parsed. */
export const MAX_SCAN_BYTES = 65_536;
/** Points of the specification. */
const QUERY_POINTS = 1;
const MUTATION_POINTS = 5;
/** A request that cannot be read may hold many operations: it costs more than most that can. */
const UNREAD_OPERATIONS = 10;

/** Cost of GraphQL requests: each alike, or by the operations in it. */
export class GraphqlCost {
  readonly byOperation: boolean;
  /** Points of a request without a mutation. */
  readonly query = QUERY_POINTS;
  readonly least = QUERY_POINTS;
  /** Points of a request that cannot be read for certain. */
  readonly unread: number;

  constructor(unit: Config['secondary']['graphqlCost']) {
    this.byOperation = unit === 'operation';
    this.unread = this.byOperation ? MUTATION_POINTS * UNREAD_OPERATIONS : MUTATION_POINTS;
  }

  ofBody(contentType: string | undefined, body: Buffer): number {
    if (!this.byOperation) return graphqlKind(contentType, body) === 'query' ? QUERY_POINTS : MUTATION_POINTS;
    const requests = requestsOf(contentType, body)?.requests;
    if (requests === undefined) return this.unread;
    const points = requests.reduce((sum, request) => sum + this.ofRequest(request), 0);
    return Math.min(MAX_POINTS, points);
  }

  /** Points of all operations of a request, by their fields. */
  ofRequest({ query, operationName }: GraphqlRequest): number {
    const costs = operationsIn(query, operationName)?.map(({ isQuery, fields }) => {
      return fields * (isQuery ? QUERY_POINTS : MUTATION_POINTS);
    });
    // Where several could be meant, the most expensive counts.
    if (costs === undefined) return this.unread;
    return Math.min(
      MAX_POINTS,
      costs.reduce((most, cost) => Math.max(most, cost), this.least),
    );
  }
}

type Operation = Readonly<{ isQuery: boolean; fields: number }>;

/** The operations that may be meant. Undefined: it cannot be read. */
function operationsIn(query: string, name: string | undefined): Operation[] | undefined {
  try {
    const document = parse(query, { noLocation: true, maxTokens: MAX_TOKENS });
    const operations = document.definitions.filter((one) => one.kind === Kind.OPERATION_DEFINITION);
    const fragments = fragmentsOf(document);
    if (operations.length === 0 || operations.length + fragments.size < document.definitions.length) return undefined;
    const named = operations.filter((one) => one.name?.value === name);
    const counted = new FieldCount(fragments);
    return (named.length === 0 ? operations : named).map((operation) => counted.operation(operation));
  } catch (error) {
    // Not GraphQL; or nested deeper than the parser can follow.
    if (error instanceof RangeError || (error instanceof Error && error.name === 'GraphQLError')) return undefined;
    throw error;
  }
}

function fragmentsOf(document: DocumentNode): ReadonlyMap<string, FragmentDefinitionNode> {
  const fragments = document.definitions.filter((one) => one.kind === Kind.FRAGMENT_DEFINITION);
  return new Map(fragments.map((fragment) => [fragment.name.value, fragment]));
}

/** Fields of a selection, and the aliases among all that is below it. */
type Fields = Readonly<{ fields: number; aliases: number; below: number }>;

const NOTHING: Fields = { fields: 0, aliases: 0, below: 0 };

/**
 * Counts the least that an upstream has to do: every field at the root, and below it every field with an alias, since
 * only an alias lets the same field be asked for again. A fragment counts wherever it is spread.
 */
class FieldCount {
  readonly #fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  /** Each fragment is looked through once, however often it is spread. */
  readonly #known = new Map<string, Fields>();

  constructor(fragments: ReadonlyMap<string, FragmentDefinitionNode>) {
    this.#fragments = fragments;
  }

  operation({ operation, selectionSet }: OperationDefinitionNode): Operation {
    const { fields, below } = this.#of(selectionSet);
    return { isQuery: operation === 'query', fields: Math.max(1, fields + below) };
  }

  #of({ selections }: SelectionSetNode): Fields {
    let sum = NOTHING;
    for (const selection of selections) {
      if (selection.kind === Kind.FIELD) {
        const inner = selection.selectionSet === undefined ? NOTHING : this.#of(selection.selectionSet);
        const aliases = selection.alias === undefined ? 0 : 1;
        sum = added(sum, { fields: 1, aliases, below: inner.aliases + inner.below });
      } else if (selection.kind === Kind.INLINE_FRAGMENT) sum = added(sum, this.#of(selection.selectionSet));
      else sum = added(sum, this.#ofFragment(selection.name.value));
    }
    return sum;
  }

  #ofFragment(name: string): Fields {
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    this.#known.set(name, NOTHING); // every server refuses a fragment that spreads itself
    const fragment = this.#fragments.get(name);
    const fields = fragment === undefined ? NOTHING : this.#of(fragment.selectionSet);
    this.#known.set(name, fields);
    return fields;
  }
}

/** Fragments that spread fragments twice grow exponentially: the count is capped. */
function added(one: Fields, other: Fields): Fields {
  return {
    fields: Math.min(MAX_POINTS, one.fields + other.fields),
    aliases: Math.min(MAX_POINTS, one.aliases + other.aliases),
    below: Math.min(MAX_POINTS, one.below + other.below),
  };
}
