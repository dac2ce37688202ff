import { closeSync, openSync } from 'node:fs';

import { bind, check } from './libc.ts';

const CLONE_NEWNS = 0x00020000;
const CLONE_NEWNET = 0x40000000;

const KIND = { mount: CLONE_NEWNS, net: CLONE_NEWNET } as const;

const unshareCall = bind<[number], number>('int unshare(int flags)');
const setnsCall = bind<[number, number], number>('int setns(int fd, int kind)');

/**
 * Runs `work` inside a network namespace and comes back, also when it throws.
 *
 * setns moves the thread, which is the one that runs all of the daemon: `work` has to be synchronous, and a promise is
 * refused, because code after its first `await` would run in the wrong namespace.
 */
export function withNetns<T>(netns: number, work: () => T extends PromiseLike<unknown> ? never : T): T {
  const before = openSync('/proc/thread-self/ns/net', 'r');
  try {
    enter(netns, 'net');
    try {
      return work();
    } finally {
      enter(before, 'net');
    }
  } finally {
    closeSync(before);
  }
}

/**
 * A new, empty network namespace as an open descriptor, after `prepare` ran inside it.
 *
 * It lives until the last descriptor and process that hold it are gone; then the kernel removes its links by itself.
 */
export function newNetns(prepare?: () => void): number {
  const before = openSync('/proc/thread-self/ns/net', 'r');
  try {
    check(unshareCall(CLONE_NEWNET), 'unshare', ['net']);
    try {
      prepare?.();
      return openSync('/proc/thread-self/ns/net', 'r');
    } finally {
      enter(before, 'net');
    }
  } finally {
    closeSync(before);
  }
}

/** Moves this thread into the namespace permanently. For tools and tests; the daemon uses `withNetns`. */
export function enter(namespace: number, kind: keyof typeof KIND): void {
  check(setnsCall(namespace, KIND[kind]), 'setns', [namespace, kind]);
}

/** Gives this thread namespaces of its own. The mount namespace of a Node process cannot be left again. */
export function unshare(...kinds: readonly (keyof typeof KIND)[]): void {
  const flags = kinds.reduce((all, kind) => all | KIND[kind], 0);
  check(unshareCall(flags), 'unshare', kinds);
}
