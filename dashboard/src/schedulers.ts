/** The label and the colour of a scheduler, the same in every chart. */

export type ThemeName = "dark" | "light";

export const ORACLE = "oracle";
export const CLAIRVOYANT = "clairvoyant";

const REFERENCES: readonly string[] = [ORACLE, CLAIRVOYANT];

/** References know what no scheduler can know: they are listed with the others, but do not compete. */
export function isReference(name: string): boolean {
  return REFERENCES.includes(name);
}

const COLOURS: Record<string, Record<ThemeName, string>> = {
  [ORACLE]: { dark: "#ffd166", light: "#b27400" },
  hybrid_ml: { dark: "#22d3ee", light: "#0786a0" },
  rl_agent: { dark: "#b37bff", light: "#7c2fe0" },
  greedy: { dark: "#4ade9a", light: "#0d8a55" },
  round_robin: { dark: "#6aa5ff", light: "#2563c9" },
  random: { dark: "#ff7ab8", light: "#c72a77" },
  cpu_only: { dark: "#9aa8c0", light: "#5b6980" },
  gpu_only: { dark: "#ff9457", light: "#c4530c" },
  least_loaded: { dark: "#ff7b7b", light: "#c62828" },
  eft: { dark: "#c8e05a", light: "#617800" },
  heft: { dark: "#d8ab82", light: "#8a5a2b" },
  predictive: { dark: "#3ddbd9", light: "#00787a" },
  attention_agent: { dark: "#e58fff", light: "#a11fb8" },
  bandit: { dark: "#8f9bff", light: "#4a4fd0" },
  [CLAIRVOYANT]: { dark: "#f2e9d2", light: "#6b5f3c" },
};

const ABBREVIATIONS: Record<string, string> = {
  ml: "ML",
  rl: "RL",
  cpu: "CPU",
  gpu: "GPU",
  dqn: "DQN",
  ai: "AI",
  eft: "EFT",
  heft: "HEFT",
};

export function labelOf(name: string): string {
  const words = name.split("_").filter(Boolean);
  return words.map((word, at) => ABBREVIATIONS[word] ?? (at === 0 ? capital(word) : word)).join(" ");
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

// Hues that are far from every colour above, in both themes (0.068 and more in OKLab).
const PLUGIN_HUES = [60, 110, 115, 120, 125, 160, 165, 170, 175, 180, 205, 235, 240, 245, 250];

/** The hue of a scheduler from a plug-in is derived from its name, so that it is always the same. */
export function colourOf(name: string, theme: ThemeName): string {
  const fixed = COLOURS[name];
  if (fixed) return fixed[theme];
  const hue = PLUGIN_HUES[hash(name) % PLUGIN_HUES.length];
  return theme === "dark" ? `hsl(${hue}, 78%, 70%)` : `hsl(${hue}, 68%, 36%)`;
}

/** FNV-1a: names that differ in one letter get distant hues. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) {
    value ^= text.charCodeAt(at);
    value = Math.imul(value, 0x01000193) >>> 0;
  }
  return value;
}
