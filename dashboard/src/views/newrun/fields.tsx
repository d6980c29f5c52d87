import { type ReactNode, useState } from "react";
import { shownText, typedNumber } from "./draft";
import { useField } from "./DraftContext";

export function Labelled({ id, label, hint, problems, children }: {
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
      <Notes id={id} hint={hint} problems={problems} />
    </div>
  );
}

/** A problem takes the place of the hint, so that the form does not jump. */
export function Notes({ id, hint, problems }: { id: string; hint?: ReactNode; problems?: string[] | undefined }) {
  if (problems?.length) {
    return (
      <p id={`${id}-note`} className="text-xs break-words text-bad" data-testid={`problem-${id}`}>
        {problems.join("; ")}
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
  const wrong = Boolean(problems?.length);
  return (
    <Labelled id={id} label={label} hint={hint} problems={problems}>
      <input
        id={id}
        aria-invalid={wrong}
        aria-describedby={wrong || hint ? `${id}-note` : undefined}
        autoComplete="off"
        className={`num h-9 w-full min-w-0 rounded-lg border bg-raised px-2.5 placeholder:text-faint ${wrong ? "border-bad" : "border-line hover:border-line-strong"}`}
        onChange={(event) => onValue(event.target.value)}
        {...rest}
      />
    </Labelled>
  );
}

/** A number of the spec. The default shows as a placeholder, and counts while the field is empty. */
export function NumberField({ path, label, hint }: { path: string; label: string; hint?: ReactNode }) {
  const { value, usual, problems, set } = useField(path);
  const [typed, setTyped] = useState("");
  // "1." and "1.0" are on the way to 1.05: what was typed stands as long as it means the value.
  const text = typedNumber(typed) === value ? typed : shownText(value);
  return (
    <TextField
      id={path}
      label={label}
      hint={hint}
      problems={problems}
      inputMode="decimal"
      placeholder={shownText(usual)}
      value={text}
      onValue={(next) => {
        setTyped(next);
        set(typedNumber(next));
      }}
    />
  );
}

export function ChoiceField({ path, label, choices }: {
  path: string;
  label: string;
  choices: { value: string; label: string; hint: string }[];
}) {
  const { value, usual, problems, set } = useField(path);
  const chosen = shownText(value ?? usual ?? choices[0]?.value);
  const known = choices.find((choice) => choice.value === chosen);
  return (
    <Labelled id={path} label={label} hint={known?.hint} problems={problems}>
      <select
        id={path}
        className="h-9 w-full min-w-0 rounded-lg border border-line bg-raised px-2 hover:border-line-strong"
        aria-describedby={`${path}-note`}
        aria-invalid={Boolean(problems?.length)}
        value={chosen}
        onChange={(event) => set(event.target.value)}
      >
        {(known ? choices : [...choices, { value: chosen, label: chosen }]).map((choice) => (
          <option key={choice.value} value={choice.value}>
            {choice.label}
          </option>
        ))}
      </select>
    </Labelled>
  );
}

/** Two or three ways, side by side. */
export function Segments<Value extends string>({ label, value, choices, onChoose }: {
  label: string;
  value: Value;
  choices: { value: Value; label: string }[];
  onChoose: (value: Value) => void;
}) {
  return (
    <div role="radiogroup" aria-label={label} className="inline-flex h-9 w-full rounded-lg border border-line bg-sunken p-0.5">
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
