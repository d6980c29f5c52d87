/** The dark and the light theme, and the palette of the current one for charts. */
import { useMemo } from "react";
import { useStore } from "zustand";
import { createStore } from "zustand/vanilla";
import { colourOf, type ThemeName } from "./schedulers";

const KEY = "hybrid.theme";

const theme = createStore<ThemeName>(() =>
  typeof document !== "undefined" && document.documentElement.dataset.theme === "light" ? "light" : "dark",
);

export function useTheme(): ThemeName {
  return useStore(theme);
}

function show(next: ThemeName): void {
  document.documentElement.dataset.theme = next;
  document.querySelector('meta[name="theme-color"]')?.setAttribute("content", next === "dark" ? "#070a12" : "#eef1f7");
  theme.setState(next, true);
}

export function toggleTheme(): void {
  const next = theme.getState() === "dark" ? "light" : "dark";
  localStorage.setItem(KEY, next);
  show(next);
}

/** Until a theme is chosen here, the page has that of the system, also when it changes. */
export function followSystemTheme(): void {
  window.matchMedia("(prefers-color-scheme: light)").addEventListener("change", ({ matches }) => {
    if (!localStorage.getItem(KEY)) show(matches ? "light" : "dark");
  });
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
  /** Size of small text on a canvas, in pixels; it grows with the text of the page. */
  small: number;
  colour: (scheduler: string) => string;
}

/** The size of the page's text relative to 16 px. */
export function textScale(): number {
  return parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
}

/** Read from the style sheet, so that each colour is defined once. */
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
