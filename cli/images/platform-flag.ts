import { UsageError } from '../exit-codes.ts';

/** `--platform` of commands for one platform of an image. */
export const PLATFORM = {
  kind: 'text',
  value: 'OS/ARCH[/VARIANT]',
  help: 'This platform of an image that has several, such as linux/arm64',
} as const;

/** `--platform` of commands for some of them. */
export const PLATFORMS = { ...PLATFORM, kind: 'list', help: `${PLATFORM.help}; may be repeated` } as const;

/** A platform as requests about stored images name it: JSON. */
export function platformJson(text: string): string {
  const [os = '', architecture = '', variant, ...more] = text.split('/');
  if (os === '' || architecture === '' || more.length > 0) {
    throw new UsageError(`invalid platform ${JSON.stringify(text)}: OS/ARCH or OS/ARCH/VARIANT is expected`);
  }
  return JSON.stringify({ os, architecture, ...(variant && { variant }) });
}
