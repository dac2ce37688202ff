import { randomInt } from 'node:crypto';

const FIRST = [
  ...['amber', 'bold', 'brave', 'bright', 'calm', 'clever', 'cosy', 'crisp', 'eager', 'early', 'fair', 'fast', 'fine'],
  ...['gentle', 'glad', 'golden', 'grand', 'green', 'happy', 'honest', 'jolly', 'keen', 'kind', 'light', 'lively'],
  ...[
    'loyal',
    'lucky',
    'mellow',
    'merry',
    'mild',
    'neat',
    'noble',
    'plain',
    'proud',
    'quick',
    'quiet',
    'rapid',
    'rare',
  ],
  ...['ready', 'robust', 'rosy', 'sharp', 'silent', 'silver', 'smart', 'solid', 'steady', 'still', 'sunny', 'swift'],
  ...['tidy', 'tough', 'true', 'upbeat', 'vivid', 'warm', 'wise', 'witty', 'young', 'zesty'],
];
const SECOND = [
  ...['abel', 'agnesi', 'allen', 'babbage', 'bohr', 'boole', 'borg', 'bose', 'brahe', 'carson', 'cerf', 'curie'],
  ...['darwin', 'dijkstra', 'einstein', 'euclid', 'euler', 'faraday', 'fermat', 'feynman', 'franklin', 'galileo'],
  ...['gauss', 'goodall', 'hamilton', 'hawking', 'herschel', 'hopper', 'hypatia', 'jackson', 'johnson', 'kalam'],
  ...['kepler', 'knuth', 'lamarr', 'lamport', 'leakey', 'liskov', 'lovelace', 'maxwell', 'mendel', 'newton', 'noether'],
  ...['pascal', 'pasteur', 'perlman', 'planck', 'ptolemy', 'raman', 'ritchie', 'rubin', 'sagan', 'shannon', 'tesla'],
  ...['thompson', 'torvalds', 'turing', 'villani', 'wiles', 'wozniak', 'wright', 'yalow'],
];

/** A free name, such as `calm_lovelace`. */
export function randomName(isTaken: (name: string) => boolean): string {
  for (let attempt = 0; ; attempt += 1) {
    const name = `${pick(FIRST)}_${pick(SECOND)}${attempt < 5 ? '' : randomInt(10 * attempt)}`;
    if (!isTaken(name)) return name;
  }
}

function pick(words: readonly string[]): string {
  return words[randomInt(words.length)]!;
}
