/** A chart of the page, drawn a second time as SVG. Loaded when somebody exports one. */
import * as echarts from "echarts/core";
import { SVGRenderer } from "echarts/renderers";
import type { Palette } from "../theme";

echarts.use([SVGRenderer]);

/** `option` is the one that the page drew: reading it back from the chart has everything that ECharts added. */
export function drawSvg(chart: echarts.ECharts, option: echarts.EChartsCoreOption, palette: Palette): string {
  const size = { width: chart.getWidth(), height: chart.getHeight() };
  const copy = echarts.init(null, null, { renderer: "svg", ssr: true, ...size });
  copy.setOption({ ...option, backgroundColor: palette.surface, animation: false });
  const svg = copy.renderToSVGString();
  copy.dispose();
  return svg;
}
