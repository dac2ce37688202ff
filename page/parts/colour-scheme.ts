import { Store } from './store.ts';

const dark = matchMedia('(prefers-color-scheme: dark)');

/** The system's scheme, for drawings that CSS does not colour. */
export const isDark = new Store(dark.matches);

dark.addEventListener('change', ({ matches }) => isDark.set(matches));
