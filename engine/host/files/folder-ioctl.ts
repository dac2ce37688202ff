import { closeSync, constants, openSync } from 'node:fs';

import { bind } from '../libc.ts';

export const ioctl = bind<[number, number, Buffer], number>(
  'int ioctl(int fd, unsigned long request, uint8_t *argument)',
);

/** Opens a folder for such calls. */
export function onFolder<T>(folder: string, use: (fd: number) => T): T {
  const fd = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    return use(fd);
  } finally {
    closeSync(fd);
  }
}
