import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { attempt } from './notices.tsx';

/** Copies a text. */
export function CopyButton({ text, label }: { text: string; label: string }): JSX.Element {
  const [isCopied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    if (!(await attempt(async () => await navigator.clipboard.writeText(text)))) return;
    setCopied(true);
    setTimeout(() => setCopied(false), 2000);
  };
  return (
    <button type="button" aria-label={label} onClick={() => void copy()}>
      {isCopied ? 'Copied' : 'Copy'}
    </button>
  );
}
