import { ChevronDown } from "lucide-react";
import type { SelectHTMLAttributes } from "react";

export interface Choice {
  value: string;
  label: string;
}

export interface SelectProps extends Omit<SelectHTMLAttributes<HTMLSelectElement>, "onChange"> {
  label: string;
  choices: Choice[];
  onChoose: (value: string) => void;
  /** Without it only screen readers get the label. */
  visibleLabel?: boolean;
}

export function Select({ label, choices, onChoose, visibleLabel, className = "", ...rest }: SelectProps) {
  return (
    <label className="inline-flex min-w-0 items-center gap-2 text-muted">
      <span className={visibleLabel ? "text-xs" : "sr-only"}>{label}</span>
      <span className="relative inline-flex min-w-0 items-center">
        <select
          className={`h-8 w-full min-w-0 appearance-none rounded-lg border border-line bg-raised pr-7 pl-2.5 text-xs text-ink hover:border-line-strong ${className}`}
          onChange={(event) => onChoose(event.target.value)}
          {...rest}
        >
          {choices.map((choice) => (
            <option key={choice.value} value={choice.value}>
              {choice.label}
            </option>
          ))}
        </select>
        <ChevronDown aria-hidden className="pointer-events-none absolute right-2 size-3.5 text-faint" />
      </span>
    </label>
  );
}
