import { BlockList, isIP } from 'node:net';

import { EngineError } from '../../lib/errors.ts';
import type { NodeRecord } from '../state/records.ts';

/** `key==value` or `key!=value`, as in `Placement.Constraints` of a service. */
type Constraint = Readonly<{ key: string; equals: boolean; value: string }>;

const KEY = /^[a-z_][a-z0-9\-_.]+$/i;
const VALUE = /^[a-z0-9:\-_\s.*()?+[\]\\^$|/]+$/i;
const NODE_LABEL = 'node.labels.';
const ENGINE_LABEL = 'engine.labels.';

/** Throws `invalid` for a text that is not a constraint. */
export function parseConstraint(text: string): Constraint {
  const operator = ['==', '!='].find((each) => text.includes(each));
  if (operator === undefined) throw new EngineError('invalid', 'constraint expected one operator from ==, !=');
  const at = text.indexOf(operator);
  const key = text.slice(0, at).trim();
  const value = text.slice(at + operator.length).trim();
  if (!KEY.test(key)) throw new EngineError('invalid', `key '${key}' is invalid`);
  if (!VALUE.test(value)) throw new EngineError('invalid', `value '${value}' is invalid`);
  return { key, equals: operator === '==', value };
}

/** Whether a node satisfies a constraint. Values are compared without case; an unknown key is never satisfied. */
export function satisfies(node: NodeRecord, { key, equals, value }: Constraint): boolean {
  const lower = key.toLowerCase();
  if (lower === 'node.ip') return isWithin(node.status.address, value) === equals;
  const actual = valueOf(node, key, lower);
  return actual !== undefined && (actual.toLowerCase() === value.toLowerCase()) === equals;
}

/** The empty text for what the node lacks. */
function valueOf(node: NodeRecord, key: string, lower: string): string | undefined {
  const { id, role, spec, description } = node;
  if (lower.startsWith(NODE_LABEL)) return labelOf(spec.labels, key.slice(NODE_LABEL.length));
  if (lower.startsWith(ENGINE_LABEL)) return labelOf(description?.engine.labels ?? {}, key.slice(ENGINE_LABEL.length));
  switch (lower) {
    case 'node.id':
      return id;
    case 'node.role':
      return role;
    case 'node.hostname':
      return description?.hostname ?? '';
    case 'node.platform.os':
      return description?.platform.os ?? '';
    case 'node.platform.arch':
      return description?.platform.architecture ?? '';
    default:
      return undefined;
  }
}

/** The value of a label, `node.labels.NAME` or `engine.labels.NAME`; the empty text without it, undefined for other keys. */
export function labelValue(node: NodeRecord, key: string): string | undefined {
  const lower = key.toLowerCase();
  const isLabel = [NODE_LABEL, ENGINE_LABEL].some((prefix) => lower.startsWith(prefix) && lower !== prefix);
  return isLabel ? valueOf(node, key, lower) : undefined;
}

function labelOf(labels: Readonly<Record<string, string>>, name: string): string {
  return Object.hasOwn(labels, name) ? labels[name]! : '';
}

/** Whether an address is the other one, or lies in its subnet. */
function isWithin(address: string, place: string): boolean {
  const [network = '', bits] = place.split('/');
  if (isIP(address) === 0 || isIP(network) === 0) return false;
  const [own, other] = [familyOf(address), familyOf(network)];
  const longest = other === 'ipv4' ? 32 : 128;
  const length = bits === undefined ? longest : /^\d{1,3}$/.test(bits) ? Number(bits) : longest + 1;
  if (length > longest) return false;
  const list = new BlockList();
  list.addSubnet(network, length, other);
  return list.check(address, own);
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 4 ? 'ipv4' : 'ipv6';
}
