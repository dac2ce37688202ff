import { useEffect, useState } from 'preact/hooks';

import { onEvents } from '../api/engine-events.ts';
import { messageOfError } from '../api/request.ts';

type Loaded<T> = Readonly<{ value: T | undefined; problem: string | undefined; reload: () => void }>;

const SETTLE_MS = 150;

/** Loads a value, and again after each event that `matters`, and when the connection came back. */
export function useLoad<T>(
  load: () => Promise<T>,
  key: string,
  matters: (type: string, id: string, action: string) => boolean = () => false,
): Loaded<T> {
  const [state, setState] = useState<{ key: string; value?: T; problem?: string }>({ key });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let isCurrent = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const run = async (): Promise<void> => {
      try {
        const value = await load();
        if (isCurrent) setState({ key, value });
      } catch (error) {
        if (isCurrent)
          setState((before) => ({ ...(before.key === key && before), key, problem: messageOfError(error) }));
      }
    };
    void run();
    const soon = (): void => {
      clearTimeout(timer);
      timer = setTimeout(() => void run(), SETTLE_MS);
    };
    const leave = onEvents({
      onEvent: ({ Type, Action, Actor }) => {
        if (matters(Type, Actor.ID, Action)) soon();
      },
      onConnect: soon,
    });
    return () => {
      isCurrent = false;
      clearTimeout(timer);
      leave();
    };
  }, [key, turn]);
  const isOwn = state.key === key;
  return {
    value: isOwn ? state.value : undefined,
    problem: isOwn ? state.problem : undefined,
    reload: () => setTurn((before) => before + 1),
  };
}
