import type { Registration } from './registration.ts';
import { DNS_PORT } from './rules.ts';

declare const isEncoded: unique symbol;

/** A line of the resolver's protocol, made by the functions below alone; shim/resolver/README.md lists them. */
export type Command = Readonly<{ line: string; [isEncoded]?: true }>;

type Names = Readonly<{ ip: string; ip6: string; names: readonly string[] }>;

const MAX_NAME_BYTES = 253;
const MAX_LABEL_BYTES = 63;
/** Further names of a container in a network, and further links, are left out: a line has at most 1 MB. */
const MAX_NAMES = 1000;
const MAX_LINKS = 500;

/** The complete state follows, up to `END`. */
export const BEGIN = command('begin');
export const END = command('end');
export const QUIT = command('quit');

export function networkCommand(id: string, name: string): Command {
  const label = name.replaceAll(/\s/g, '_').toLowerCase();
  return command('net', word(id), word(isName(label) ? label : ''));
}

/** Makes names of an owner known in a network, without those that no question can ask for. */
export function namesCommand(network: string, owner: string, { ip, ip6, names }: Names): Command {
  const usable = names.filter(isName).slice(0, MAX_NAMES);
  if (usable.length === 0) return forgetNamesCommand(network, owner);
  return command('name', ...[network, owner, ip, ip6, ...usable].map(word));
}

export function forgetNamesCommand(network: string, owner: string): Command {
  return command('unname', word(network), word(owner));
}

/** Serves a container; its networks must be known. */
export function boxCommand({ containerId, pid, netns, networks, links, upstreams }: Registration): Command {
  const usable = links.filter(({ alias, target }) => isName(alias) && isName(target)).slice(0, MAX_LINKS);
  return command(
    ...['box', word(containerId), String(pid), word(netns), String(DNS_PORT)],
    list(networks.map(({ id }) => word(id))),
    list(upstreams.map(({ ip, inside }) => `${inside ? 'c' : 'h'}:${word(ip)}`)),
    list(usable.map(({ alias, target }) => `${word(alias.toLowerCase())}=${word(target.toLowerCase())}`)),
    '0',
  );
}

export function forgetBoxCommand(containerId: string): Command {
  return command('unbox', word(containerId));
}

/** Whether a question can ask for a name: labels of 1 to 63 bytes, without blanks and control characters. */
export function isName(text: string): boolean {
  if (Buffer.byteLength(text) > MAX_NAME_BYTES || /[\s\p{Cc}]/u.test(text)) return false;
  return text.split('.').every((label) => label !== '' && Buffer.byteLength(label) <= MAX_LABEL_BYTES);
}

function command(...words: string[]): Command {
  return { line: words.join(' ') };
}

/** Encodes a field, so that it stays one; `-` stands for an empty one. */
function word(field: string): string {
  if (field === '') return '-';
  if (field === '-') return '%2D';
  return field.replaceAll(/[\p{Cc} %,=]/gu, (letter) => encodeURIComponent(letter));
}

function list(words: readonly string[]): string {
  return words.length === 0 ? '-' : words.join(',');
}
