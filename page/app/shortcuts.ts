import { go } from './route.ts';

/** Second keys after `g`. */
export const PLACES: ReadonlyMap<string, string> = new Map([
  ['c', 'containers'],
  ['i', 'images'],
  ['v', 'volumes'],
  ['n', 'networks'],
  ['e', 'events'],
  ['s', 'system'],
  ['u', 'cluster'],
]);

let isGoing = false;

/** `g c` and so on go to a screen, `/` to its search, Enter from there to the first row, `j` and `k` through the rows. */
export function handleShortcuts(): void {
  addEventListener('keydown', (event) => {
    const target = event.target instanceof HTMLElement ? event.target : document.body;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (target instanceof HTMLInputElement && target.type === 'search') return leaveSearch(target, event);
    if (isTyping(target)) return;
    const place = isGoing ? PLACES.get(event.key) : undefined;
    isGoing = event.key === 'g';
    if (place !== undefined) go(place);
    else if (event.key === '/') focusOn('input[type=search]');
    else if (event.key === 'j') step(1);
    else if (event.key === 'k') step(-1);
    else return;
    event.preventDefault();
  });
}

/** Escape empties a search (the browser does), and then leaves it. */
function leaveSearch(search: HTMLInputElement, event: KeyboardEvent): void {
  if (event.key === 'Escape' && search.value === '') search.blur();
  if (event.key !== 'Enter') return;
  step(1);
  event.preventDefault(); // else the row is opened
}

function isTyping(target: HTMLElement): boolean {
  const isText = target instanceof HTMLInputElement && target.type !== 'checkbox';
  return isText || target.closest('textarea, select, dialog, .terminal') !== null;
}

function focusOn(selector: string): void {
  document.querySelector<HTMLElement>(selector)?.focus();
}

/** Moves the focus to the main link of the next row. */
function step(by: number): void {
  const links = [...document.querySelectorAll<HTMLElement>('main .row-link:not(:disabled)')];
  const at = links.indexOf(document.activeElement as HTMLElement);
  const next = links[at === -1 && by < 0 ? links.length - 1 : at + by];
  next?.focus();
  next?.scrollIntoView({ block: 'nearest' });
}
