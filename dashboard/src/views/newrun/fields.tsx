import { type ReactNode, useState } from "react";
import { useField } from "./DraftContext";
import { parseNumber, textOf } from "./draft";

export function LabelledField({
  id,
  label,
  hint,
  problems,
  children,
}: {
  id: string;
  label: string;
  hint?: ReactNode;
  problems?: string[] | undefined;
  children: ReactNode;
}) {
  return (
    <div className="flex min-w-0 flex-col gap-1">
      <label htmlFor={id} className="text-xs font-medium text-ink">
        {label}
      </label>
      {children}
      <FieldNote id={id} hint={hint} problems={problems} />
    </div>
  );
}

/** The hint of a field, or the first of its problems: the next one shows when that is solved. */
export function FieldNote({ id, hint, problems }: { id: string; hint?: ReactNode; problems?: string[] | undefined }) {
  if (problems?.length) {
    return (
      <p id={`${id}-note`} className="text-xs break-words text-bad" data-testid={`problem-${id}`}>
        {problems[0]}
      </p>
    );
  }
  return hint ? (
    <p id={`${id}-note`} className="text-xs text-faint">
      {hint}
    </p>
  ) : null;
}

interface TextFieldProps {
  id: string;
  label: string;
  hint?: ReactNode;
  value: string;
  problems?: string[] | undefined;
  placeholder?: string;
  inputMode?: "text" | "decimal" | "numeric";
  maxLength?: number;
  onValue: (value: string) => void;
}

export function TextField({ id, label, hint, problems, onValue, ...rest }: TextFieldProps) {
  const invalid = Boolean(problems?.length);
  return (
    <LabelledField id={id} label={label} hint={hint} problems={problems}>
      <input
        id={id}
        aria-invalid={invalid}
        aria-describedby={invalid || hint ? `${id}-note` : undefined}
        autoComplete="off"
        className={`num h-9 w-full min-w-0 rounded-lg border bg-raised px-2.5 placeholder:text-faint ${invalid ? "border-bad" : "border-line hover:border-line-strong"}`}
        onChange={(event) => onValue(event.target.value)}
        {...rest}
      />
    </LabelledField>
  );
}

/** A number of the spec; its default is the placeholder. */
export function NumberField({
  path,
  label,
  hint,
  required = false,
}: {
  path: string;
  label: string;
  hint?: ReactNode;
  /** An empty field is a mistake, not the default. */
  required?: boolean;
}) {
  const { value, fallback, problems, set } = useField(path);
  const [input, setInput] = useState("");
  // "1." and "1.0" are kept as typed, so that 1.05 can be entered.
  const text = parseNumber(input) === value ? input : textOf(value);
  return (
    <TextField
      id={path}
      label={label}
      hint={hint}
      problems={problems}
      inputMode="decimal"
      placeholder={textOf(fallback)}
      value={text}
      onValue={(next) => {
        setInput(next);
        set(parseNumber(next) ?? (required ? "" : undefined));
      }}
    />
  );
}

export function ChoiceField({
  path,
  label,
  choices,
  onChoose,
}: {
  path: string;
  label: string;
  choices: { value: string; label: string; hint: string }[];
  /** Instead of setting the field at `path`. */
  onChoose?: (value: string) => void;
}) {
  const { value, fallback, problems, set } = useField(path);
  const selected = textOf(value ?? fallback ?? choices[0]?.value);
  const known = choices.find((choice) => choice.value === selected);
  return (
    <LabelledField id={path} label={label} hint={known?.hint} problems={problems}>
      <select
        id={path}
        className="h-9 w-full min-w-0 rounded-lg border border-line bg-raised px-2 hover:border-line-strong"
        aria-describedby={`${path}-note`}
        aria-invalid={Boolean(problems?.length)}
        value={selected}
        onChange={(event) => (onChoose ?? set)(event.target.value)}
      >
        {(known ? choices : [...choices, { value: selected, label: selected }]).map((choice) => (
          <option key={choice.value} value={choice.value}>
            {choice.label}
          </option>
        ))}
      </select>
    </LabelledField>
  );
}

/** One of some choices that need a description. */
export function Card({
  group,
  title,
  checked,
  onCheck,
  children,
}: {
  group: string;
  title: string;
  checked: boolean;
  onCheck: () => void;
  children: ReactNode;
}) {
  return (
    <label className="flex cursor-pointer flex-col gap-0.5 rounded-lg border border-line bg-sunken px-3 py-2 hover:border-line-strong has-checked:border-accent has-checked:bg-accent/10 has-focus-visible:outline-2 has-focus-visible:outline-accent">
      <span className="flex items-center gap-2 font-medium">
        <input type="radio" name={group} className="accent-(--accent)" checked={checked} onChange={onCheck} />
        {title}
      </span>
      <span className="text-xs text-muted">{children}</span>
    </label>
  );
}

/** Two or three choices, side by side. */
export function Segments<Value extends string>({
  label,
  value,
  choices,
  onChoose,
}: {
  label: string;
  value: Value;
  choices: { value: Value; label: string }[];
  onChoose: (value: Value) => void;
}) {
  return (
    <div
      role="radiogroup"
      aria-label={label}
      className="inline-flex h-9 w-full rounded-lg border border-line bg-sunken p-0.5"
    >
      {choices.map((choice) => (
        <label
          key={choice.value}
          className="flex flex-1 cursor-pointer items-center justify-center rounded-md px-2 text-xs whitespace-nowrap text-muted has-checked:bg-raised has-checked:font-semibold has-checked:text-accent has-focus-visible:outline-2 has-focus-visible:outline-accent"
        >
          <input
            type="radio"
            className="sr-only"
            name={label}
            checked={choice.value === value}
            onChange={() => onChoose(choice.value)}
          />
          {choice.label}
        </label>
      ))}
    </div>
  );
}
