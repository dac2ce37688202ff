import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { open } from '../api/request.ts';
import { LayerList, useTransfer } from './progress.tsx';

type Account = Readonly<{ username: string; password: string }>;

/** Pushes a tag, with the progress of each layer. The account is for this push alone, and is stored nowhere. */
export function PushForm({ tags }: { tags: readonly string[] }): JSX.Element | null {
  const [tag, setTag] = useState(tags[0] ?? '');
  const [username, setUsername] = useState('');
  const [password, setPassword] = useState('');
  const { layers, follow } = useTransfer();
  if (tags.length === 0) return null;
  const push = async (): Promise<void> => {
    if (await follow(beginPush(tag, { username, password }), `Pushed ${tag}`)) setPassword('');
  };
  return (
    <>
      <form
        class="actions"
        onSubmit={(event) => {
          event.preventDefault();
          void push();
        }}
      >
        <select aria-label="Tag to push" value={tag} onChange={(event) => setTag(event.currentTarget.value)}>
          {tags.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
        <input
          type="text"
          autocomplete="off"
          placeholder="user, if needed"
          aria-label="User of the registry"
          value={username}
          onInput={(event) => setUsername(event.currentTarget.value)}
        />
        <input
          type="password"
          autocomplete="off"
          placeholder="password"
          aria-label="Password of the registry"
          value={password}
          onInput={(event) => setPassword(event.currentTarget.value)}
        />
        <button type="submit" disabled={layers !== undefined}>
          Push
        </button>
      </form>
      {layers !== undefined && <LayerList layers={layers} />}
    </>
  );
}

async function beginPush(name: string, account: Account): Promise<Response> {
  const [, repository = name, tag = 'latest'] = /^(.*?)(?::([^:/]+))?$/.exec(name) ?? [];
  const headers = { 'x-registry-auth': encoded(account.username === '' ? {} : account) };
  const path = `/images/${repository.split('/').map(encodeURIComponent).join('/')}/push`;
  return await open('POST', path, { query: { tag }, headers });
}

/** JSON as the base64 of URLs, as the API takes it. */
function encoded(value: object): string {
  const bytes = new TextEncoder().encode(JSON.stringify(value));
  return bytes.toBase64({ alphabet: 'base64url' });
}
