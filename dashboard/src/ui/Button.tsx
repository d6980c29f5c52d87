import type { ButtonHTMLAttributes, ReactNode } from "react";

const VARIANT = {
  plain: "border-line bg-sunken text-ink hover:border-line-strong hover:bg-raised",
  primary: "border-transparent bg-accent text-on-accent font-semibold hover:brightness-110",
  danger: "border-bad/50 bg-bad/10 text-bad hover:bg-bad/20",
  ghost: "border-transparent text-muted hover:text-ink hover:bg-raised",
};

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  variant?: keyof typeof VARIANT;
  icon?: ReactNode;
  /** For a button that is only an icon. */
  label?: string;
}

export function Button({ variant = "plain", icon, label, children, className = "", ...rest }: ButtonProps) {
  const shape = children === undefined ? "size-9 justify-center" : "h-9 px-3";
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      className={`inline-flex shrink-0 items-center gap-2 rounded-lg border whitespace-nowrap transition-colors disabled:cursor-not-allowed disabled:opacity-45 ${shape} ${VARIANT[variant]} ${className}`}
      {...rest}
    >
      {icon}
      {children}
    </button>
  );
}
