import { render } from 'preact';

import { followEvents } from './api/engine-events.ts';
import { followRoute } from './app/route.ts';
import { Shell } from './app/shell.tsx';
import { handleShortcuts } from './app/shortcuts.ts';
import { followContainers } from './containers/containers.ts';

import '@xterm/xterm/css/xterm.css';
import 'uplot/dist/uPlot.min.css';
import './look/look.css';
import './look/files.css';
import './look/tables.css';
import './look/logs.css';
import './look/networks.css';

followRoute();
handleShortcuts();
followContainers();
followEvents();
render(<Shell />, document.body);
