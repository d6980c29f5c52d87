/** Dark or light, and the palette of the present theme for what is drawn on a canvas. */
import { useMemo } from "react";
import { colourOf, type ThemeName } from "./schedulers";
import { createStore, useSelected } from "./store";

const KEY = "hybrid.theme";

const theme = createStore<ThemeName>(
  typeof document !== "undefined" && document.documentElement.dataset["theme"] === "light"
    ? "light"
    : "dark",
);

export function useTheme(): ThemeName {
  return useSelected(theme, (name) => name);
}

export function toggleTheme(): void {
  const next = theme.get() === "dark" ? "light" : "dark";
  document.documentElement.dataset["theme"] = next;
  document
    .querySelector('meta[name="theme-color"]')
    ?.setAttribute("content", next === "dark" ? "#070a12" : "#eef1f7");
  localStorage.setItem(KEY, next);
  theme.set(next);
}

export interface Palette {
  theme: ThemeName;
  ink: string;
  muted: string;
  faint: string;
  line: string;
  surface: string;
  accent: string;
  accent2: string;
  good: string;
  warn: string;
  bad: string;
  gpu: string;
  cpu: string;
  /** Pixels of small text on a canvas; it grows with the page's text on a wall. */
  small: number;
  colour: (scheduler: string) => string;
}

/** How much larger than usual the page's text is. */
export function textScale(): number {
  return parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
}

/** Read from the style sheet, so that a colour is written down once. */
export function usePalette(): Palette {
  const name = useTheme();
  return useMemo(() => {
    const style = getComputedStyle(document.documentElement);
    const token = (key: string) => style.getPropertyValue(`--${key}`).trim();
    return {
      theme: name,
      ink: token("ink"),
      muted: token("muted"),
      faint: token("faint"),
      line: token("line"),
      surface: token("raised"),
      accent: token("accent"),
      accent2: token("accent2"),
      good: token("good"),
      warn: token("warn"),
      bad: token("bad"),
      gpu: token("gpu"),
      cpu: token("cpu"),
      small: 11 * textScale(),
      colour: (scheduler: string) => colourOf(scheduler, name),
    };
  }, [name]);
}
