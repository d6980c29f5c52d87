import type { ReactNode } from "react";

/** A large number with its name and a note. */
export function Stat({
  label,
  value,
  note,
  raw,
}: {
  label: string;
  value: string;
  note?: ReactNode;
  raw?: number | null | undefined;
}) {
  return (
    <div className="min-w-0">
      <dt className="truncate text-xs text-muted">{label}</dt>
      <dd className="num truncate text-2xl leading-8 font-semibold tracking-tight" data-value={raw ?? undefined}>
        {value}
      </dd>
      {note !== undefined && <dd className="num truncate text-xs text-faint">{note}</dd>}
    </div>
  );
}
