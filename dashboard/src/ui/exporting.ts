/** What a widget shows, as a file: its charts as SVG or PNG, its figures as CSV. */
import type { ECharts, EChartsCoreOption } from "echarts/core";
import type { Palette } from "../theme";

interface Drawn {
  chart: ECharts;
  option: EChartsCoreOption;
}

/** The charts on the page, by the element that they are drawn in. */
const charts = new WeakMap<Element, Drawn>();

export function registerChart(element: Element, chart: ECharts, option: EChartsCoreOption): void {
  charts.set(element, { chart, option });
}

const PNG_SCALE = 2;
const PADDING_PX = 32;
const REVOKE_MS = 60_000;

/** The chart, where it is all that the widget shows: a legend beside it belongs into the file. */
function onlyChart(content: Element): Drawn | undefined {
  const elements = content.querySelectorAll("[data-chart]");
  const [element] = elements;
  const fills = elements.length === 1 && (element?.clientWidth ?? 0) >= content.clientWidth - PADDING_PX;
  return element && fills ? charts.get(element) : undefined;
}

/** The widget's chart as a drawing; else its content as it looks. */
export async function toSvg(content: Element, palette: Palette): Promise<string> {
  const drawn = onlyChart(content);
  if (!drawn) return pictureSvg(content, palette);
  const { drawSvg } = await import("./svgRenderer");
  return drawSvg(drawn.chart, drawn.option, palette);
}

export async function toPng(content: Element, palette: Palette): Promise<string> {
  const drawn = onlyChart(content);
  const picture = { type: "png" as const, pixelRatio: PNG_SCALE, backgroundColor: palette.surface };
  return drawn ? drawn.chart.getDataURL(picture) : rasterised(pictureSvg(content, palette));
}

/** Styles that decide how text, bars and tables look. */
const STYLES = [
  ...["display", "position", "left", "right", "top", "bottom", "width", "height", "box-sizing", "overflow"],
  ...["flex-direction", "flex-grow", "flex-shrink", "flex-basis", "flex-wrap", "align-items", "justify-content", "gap"],
  ...["grid-template-columns", "grid-template-rows", "margin", "padding", "border", "border-radius", "border-spacing"],
  ...["background-color", "background-image", "color", "opacity", "transform", "font-family", "font-size"],
  ...["font-weight", "line-height", "letter-spacing", "text-align", "vertical-align", "white-space", "writing-mode"],
  ...["text-overflow", "text-decoration", "visibility", "z-index", "clip-path"],
];

/** HTML inside of an SVG: browsers show it; drawing programs may not. */
function pictureSvg(content: Element, palette: Palette): string {
  const [width, height] = [content.scrollWidth, content.scrollHeight];
  const copy = styledCopy(content) as HTMLElement;
  Object.assign(copy.style, { width: `${width}px`, height: `${height}px`, overflow: "visible" });
  copy.setAttribute("xmlns", "http://www.w3.org/1999/xhtml");
  const html = new XMLSerializer().serializeToString(copy);
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}"><rect width="100%" height="100%" fill="${palette.surface}"/><foreignObject width="100%" height="100%">${html}</foreignObject></svg>`;
}

function styledCopy(element: Element): Element {
  if (element instanceof HTMLCanvasElement) {
    const image = document.createElement("img");
    image.src = element.toDataURL();
    copyStyles(element, image);
    return image;
  }
  const copy = element.cloneNode(false) as Element;
  for (const name of ["class", "id"]) copy.removeAttribute(name);
  copyStyles(element, copy as HTMLElement);
  for (const child of element.childNodes) {
    if (child instanceof Element) copy.append(styledCopy(child));
    else if (child.nodeType === Node.TEXT_NODE) copy.append(child.cloneNode());
  }
  return copy;
}

function copyStyles(from: Element, to: HTMLElement | SVGElement): void {
  const style = getComputedStyle(from);
  for (const name of STYLES) to.style.setProperty(name, style.getPropertyValue(name));
  // A picture has no web fonts: text that is not cut on the page may be a little wider in it.
  if (style.textOverflow === "ellipsis" && from.scrollWidth <= from.clientWidth) to.style.overflow = "visible";
}

async function rasterised(svg: string): Promise<string> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = image.width * PNG_SCALE;
  canvas.height = image.height * PNG_SCALE;
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL("image/png");
}

/** All tables below an element, with unrounded numbers; an empty line between two. Without a table, its lists. */
export function toCsv(content: Element): string {
  const tables = [...content.querySelectorAll("table")];
  if (tables.length === 0) return [...content.querySelectorAll("li, dl > div")].map(listLine).join("\r\n");
  return tables
    .map((table) =>
      rowsOf(table)
        .map((row) => csvLine([...row.cells]))
        .join("\r\n"),
    )
    .join("\r\n\r\n");
}

/** Lines of a chart over tasks: a line of text for each point. */
export function curvesCsv(value: string, curves: readonly { name: string; points: [number, number][] }[]): string {
  const lines = curves.flatMap(({ name, points }) =>
    points.map(([tasks, at]) => [name, String(tasks), String(at)].map(csvCell).join(",")),
  );
  return [["line", "tasks", value].map(csvCell).join(","), ...lines].join("\r\n");
}

/** The names of columns come first, also those below a matrix. */
function rowsOf({ tHead, tFoot, tBodies }: HTMLTableElement): HTMLTableRowElement[] {
  const names = [tHead, tFoot].flatMap((part) => (part ? [...part.rows] : []));
  return [...names, ...[...tBodies].flatMap((body) => [...body.rows])];
}

function csvLine(cells: HTMLElement[]): string {
  return cells.map((cell) => csvCell(cell.dataset.value ?? textOf(cell))).join(",");
}

/** With a space where elements meet: a badge behind a name is a word of its own. */
function textOf(cell: Node): string {
  if (cell.childNodes.length === 0) return cell.textContent?.trim() ?? "";
  return [...cell.childNodes].map(textOf).filter(Boolean).join(" ");
}

/** An entry of a list: its texts and values, in their order. */
function listLine(entry: Element): string {
  const parts = [...entry.querySelectorAll<HTMLElement>("*")].filter((part) => {
    const inValue = part.parentElement?.closest("[data-value]");
    const text = part.childElementCount === 0 && part.textContent?.trim();
    return !(inValue && entry.contains(inValue)) && (part.dataset.value !== undefined || text);
  });
  return csvLine(parts);
}

/** A text that begins like a formula would be run by a spreadsheet. */
export function csvCell(text: string): string {
  const formula = /^[=+\-@\t]/.test(text) && !Number.isFinite(Number(text));
  const safe = formula ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function download(name: string, url: string): void {
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
}

export function downloadText(name: string, text: string, type: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  download(name, url);
  // Some browsers read it after the click.
  setTimeout(() => URL.revokeObjectURL(url), REVOKE_MS);
}
