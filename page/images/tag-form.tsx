import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { call } from '../api/request.ts';
import { attempt, notify } from '../parts/notices.tsx';

/** Gives an image one more name. */
export function TagForm({ id }: { id: string }): JSX.Element {
  const [name, setName] = useState('');
  const tag = async (): Promise<void> => {
    const [, repo = '', label = 'latest'] = /^(.*?)(?::([^:/]+))?$/.exec(name.trim()) ?? [];
    await call('POST', `/images/${encodeURIComponent(id)}/tag`, { query: { repo, tag: label } });
    notify(`Tagged ${repo}:${label}`);
    setName('');
  };
  return (
    <form
      class="actions"
      onSubmit={(event) => {
        event.preventDefault();
        if (name.trim() !== '') void attempt(tag);
      }}
    >
      <input
        type="text"
        placeholder="new tag"
        aria-label="New tag"
        value={name}
        onInput={(event) => setName(event.currentTarget.value)}
      />
      <button type="submit">Tag</button>
    </form>
  );
}
