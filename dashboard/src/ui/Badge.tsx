import type { ReactNode } from "react";

const TONE = {
  neutral: "border-line text-muted",
  accent: "border-accent/40 bg-accent/10 text-accent",
  accent2: "border-accent2/40 bg-accent2/10 text-accent2",
  good: "border-good/40 bg-good/10 text-good",
  warn: "border-warn/40 bg-warn/10 text-warn",
  bad: "border-bad/40 bg-bad/10 text-bad",
};

export type Tone = keyof typeof TONE;

export function Badge({ tone = "neutral", title, children }: { tone?: Tone; title?: string; children: ReactNode }) {
  return (
    <span
      title={title}
      className={`inline-flex items-center gap-1 rounded-full border px-2 py-px text-[0.6875rem] leading-4 font-medium whitespace-nowrap ${TONE[tone]}`}
    >
      {children}
    </span>
  );
}
