import type { Stats } from 'node:fs';

/** Bits of the mode of a file in Go. */
export const GO_MODE = {
  FOLDER: 2 ** 31,
  LINK: 2 ** 27,
  DEVICE: 2 ** 26,
  PIPE: 2 ** 25,
  SOCKET: 2 ** 24,
  SET_USER: 2 ** 23,
  SET_GROUP: 2 ** 22,
  CHARACTERS: 2 ** 21,
  STICKY: 2 ** 20,
} as const;

/** The mode of a file of this machine, as Go writes it. */
export function goMode(stats: Stats): number {
  const { FOLDER, LINK, DEVICE, PIPE, SET_USER, SET_GROUP, CHARACTERS, STICKY } = GO_MODE;
  const bits: readonly (readonly [boolean, number])[] = [
    [stats.isDirectory(), FOLDER],
    [stats.isSymbolicLink(), LINK],
    [stats.isBlockDevice() || stats.isCharacterDevice(), DEVICE],
    [stats.isCharacterDevice(), CHARACTERS],
    [stats.isFIFO(), PIPE],
    [(stats.mode & 0o4000) !== 0, SET_USER],
    [(stats.mode & 0o2000) !== 0, SET_GROUP],
    [(stats.mode & 0o1000) !== 0, STICKY],
  ];
  return bits.reduce((sum, [isSet, bit]) => sum + (isSet ? bit : 0), stats.mode & 0o777);
}
