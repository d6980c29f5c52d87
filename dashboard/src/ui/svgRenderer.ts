/** A chart of the page, drawn a second time as SVG. Loaded when somebody exports one. */
import * as echarts from "echarts/core";
import { SVGRenderer } from "echarts/renderers";
import type { Palette } from "../theme";

echarts.use([SVGRenderer]);

const TITLE_PX = 40;
const LEGEND_PX = 44;

interface Drawn {
  title?: unknown;
  legend?: { show?: boolean }[];
  grid?: { top?: number | string; bottom?: number | string }[];
  series?: { name?: string }[];
}

export function drawSvg(chart: echarts.ECharts, title: string, palette: Palette): string {
  const [width, height] = [Math.max(chart.getWidth(), 480), chart.getHeight() + TITLE_PX + LEGEND_PX];
  const copy = echarts.init(null, null, { renderer: "svg", ssr: true, width, height });
  const option = chart.getOption() as Drawn;
  const names = (option.series ?? []).flatMap((series) => series.name || []);
  const legend = option.legend?.length
    ? option.legend.map((each) => ({ ...each, top: TITLE_PX }))
    : [{ show: names.length > 1, type: "scroll", bottom: 6, textStyle: { color: palette.muted } }];
  const moved = (value: number | string | undefined, by: number) => (typeof value === "number" ? value + by : value);
  copy.setOption({
    ...option,
    backgroundColor: palette.surface,
    animation: false,
    legend,
    title: [{ text: title, left: 12, top: 10, textStyle: { color: palette.ink, fontSize: 15 } }],
    grid: (option.grid ?? []).map((grid) => ({
      ...grid,
      top: moved(grid.top, TITLE_PX),
      bottom: moved(grid.bottom, LEGEND_PX),
    })),
  } as echarts.EChartsCoreOption);
  const svg = copy.renderToSVGString();
  copy.dispose();
  return svg;
}
