import uPlot from 'uplot';

type Look = Readonly<{
  width: number;
  height: number;
  colours: readonly string[];
  grid: string;
  format: (value: number) => string;
}>;

/** Times of a shorter span have seconds. */
const MAX_SECONDS_SPAN = 300;

/** Draws lines over time; loaded when the first chart is shown. */
export function createPlot(element: HTMLElement, data: uPlot.AlignedData, look: Look): uPlot {
  const { width, height, colours, grid, format } = look;
  const ink = getComputedStyle(element).color;
  const axis: uPlot.Axis = {
    stroke: ink,
    grid: { stroke: grid, width: 1 },
    ticks: { show: false },
    font: '11px system-ui',
  };
  return new uPlot(
    {
      width,
      height,
      legend: { show: false },
      cursor: { show: false },
      select: { show: false, left: 0, top: 0, width: 0, height: 0 },
      scales: { y: { range: (_plot, _min, max) => [0, Math.max(max * 1.1, 1)] } },
      axes: [
        {
          ...axis,
          grid: { show: false },
          size: 20,
          space: 80,
          values: (_plot, values) => values.map(clockText(values)),
        },
        { ...axis, size: 64, values: (_plot, values) => values.map(format) },
      ],
      series: [
        {},
        ...data.slice(1).map((_, index) => {
          const stroke = colours[index] ?? ink;
          return { stroke, fill: paleOf(stroke), width: 1.5, points: { show: false } };
        }),
      ],
    },
    data,
    element,
  );
}

function clockText(values: readonly number[]): (seconds: number) => string {
  const span = (values.at(-1) ?? 0) - (values[0] ?? 0);
  const second = span < MAX_SECONDS_SPAN ? ({ second: '2-digit' } as const) : {};
  return (seconds) =>
    new Date(seconds * 1000).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit', ...second });
}

/** A computed colour such as `rgb(31, 95, 174)`, nearly transparent. */
function paleOf(colour: string): string {
  return colour.replace(')', ', 0.12)');
}
