import uPlot from 'uplot';

type Look = Readonly<{ width: number; height: number; colours: readonly string[]; format: (value: number) => string }>;

/** Draws lines over time; loaded when the first chart is shown. */
export function createPlot(element: HTMLElement, data: uPlot.AlignedData, look: Look): uPlot {
  const { width, height, colours, format } = look;
  const ink = getComputedStyle(element).color;
  const axis: uPlot.Axis = { stroke: ink, grid: { show: false }, ticks: { show: false }, font: '11px system-ui' };
  return new uPlot(
    {
      width,
      height,
      legend: { show: false },
      cursor: { show: false },
      select: { show: false, left: 0, top: 0, width: 0, height: 0 },
      scales: { y: { range: (_plot, _min, max) => [0, Math.max(max * 1.1, 1)] } },
      axes: [
        { ...axis, size: 20 },
        { ...axis, size: 64, values: (_plot, values) => values.map(format) },
      ],
      series: [
        {},
        ...data.slice(1).map((_, index) => ({ stroke: colours[index] ?? ink, width: 1.5, points: { show: false } })),
      ],
    },
    data,
    element,
  );
}
