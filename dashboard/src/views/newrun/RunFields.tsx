import type { Preset } from "../../api/types";
import { usePolled } from "../../api/usePolled";
import { Widget } from "../../ui";
import { shownText } from "./draft";
import { useDraft, useField } from "./DraftContext";
import { Labelled, Notes, NumberField, Segments, TextField } from "./fields";

export function RunFields() {
  const name = useField("name");
  return (
    <Widget id="new-run" title="The run" hint="How long and how fast. Whatever stays empty has the default that is shown in grey." scroll>
      <div className="grid gap-x-4 gap-y-4 px-1 sm:grid-cols-2">
        <TextField
          id="name"
          label="Name"
          hint="a label for people"
          value={shownText(name.value)}
          problems={name.problems}
          maxLength={120}
          onValue={(value) => name.set(value || undefined)}
        />
        <NumberField path="seed" label="Seed" hint="the same spec and seed give the same tasks" />
        <Length />
        <Pace />
      </div>
    </Widget>
  );
}

function Length() {
  const { value, problems, set } = useField("tasks");
  const endless = value === undefined || value === null;
  return (
    <div className="flex flex-col gap-1">
      <span className="text-xs font-medium">Length</span>
      <Segments
        label="Length"
        value={endless ? "endless" : "counted"}
        choices={[
          { value: "endless", label: "Endless" },
          { value: "counted", label: "A number of tasks" },
        ]}
        onChoose={(choice) => set(choice === "endless" ? undefined : 10_000)}
      />
      {endless ? (
        <Notes id="tasks" hint="until somebody stops it" problems={problems} />
      ) : (
        <NumberField path="tasks" label="Tasks" />
      )}
    </div>
  );
}

function Pace() {
  const { value, problems, set } = useField("pace");
  const fastest = value === "max";
  return (
    <div className="flex flex-col gap-1">
      <span className="text-xs font-medium">Pace</span>
      <Segments
        label="Pace"
        value={fastest ? "max" : "watched"}
        choices={[
          { value: "watched", label: "To watch" },
          { value: "max", label: "As fast as it can" },
        ]}
        onChoose={(choice) => set(choice === "max" ? "max" : undefined)}
      />
      {fastest ? (
        <Notes id="pace" hint="thousands of tasks a second" problems={problems} />
      ) : (
        <NumberField path="pace" label="Tasks per second" />
      )}
    </div>
  );
}

export function WorkloadFields() {
  return (
    <Widget id="new-workload" title="The workload" hint="What the tasks are like. hpc is a real contest: the GPU wins about half of the tasks, so that deciding matters." scroll>
      <div className="flex flex-col gap-5 px-1">
        <Presets />
        <div className="grid gap-x-4 gap-y-4 sm:grid-cols-2">
          <NumberField path="workload.arrival_rate" label="Arrival rate" hint="tasks per second of simulated time; more means queues" />
          <NumberField path="workload.dependencies.probability" label="Dependencies" hint="share of tasks that wait for earlier ones, 0 … 1" />
        </div>
        <DriftFields />
      </div>
    </Widget>
  );
}

function Presets() {
  const presets = usePolled<Preset[]>("/api/presets", 0);
  const { setPreset } = useDraft();
  const { value, usual, problems } = useField("workload.preset");
  const chosen = shownText(value ?? usual);
  return (
    <fieldset>
      <legend className="pb-1 text-xs font-medium">Preset</legend>
      {presets.error && !presets.data && <p className="text-xs text-bad">{presets.error.message}</p>}
      <div className="grid gap-2 sm:grid-cols-2 2xl:grid-cols-3">
        {(presets.data ?? []).map((preset) => (
          <label
            key={preset.name}
            className="flex cursor-pointer flex-col gap-0.5 rounded-lg border border-line bg-sunken px-3 py-2 hover:border-line-strong has-checked:border-accent has-checked:bg-accent/10 has-focus-visible:outline-2 has-focus-visible:outline-accent"
          >
            <span className="flex items-center gap-2 font-medium">
              <input
                type="radio"
                name="preset"
                className="accent-(--accent)"
                checked={chosen === preset.name}
                onChange={() => setPreset(preset.name)}
              />
              {preset.name}
            </span>
            <span className="text-xs text-muted">{preset.description}</span>
          </label>
        ))}
      </div>
      <Notes id="workload.preset" problems={problems} />
    </fieldset>
  );
}

interface Step {
  after: unknown;
  preset: unknown;
}

function DriftFields() {
  const presets = usePolled<Preset[]>("/api/presets", 0).data ?? [];
  const { value, problems, set } = useField("workload.drift");
  const steps: Step[] = Array.isArray(value) ? (value as Step[]) : [];
  const change = (next: Step[]) => set(next.length ? next : undefined);
  const last = Number(steps.at(-1)?.after ?? 0);
  const add = () => change([...steps, { after: (last || 0) + 1000, preset: presets.at(-1)?.name ?? "cpu_friendly" }]);
  return (
    <fieldset className="flex flex-col gap-2">
      <legend className="pb-1 text-xs font-medium">Drift</legend>
      {steps.map((step, at) => (
        <DriftStep
          key={at}
          at={at}
          step={step}
          presets={presets}
          onChange={(changed) => change(steps.map((old, place) => (place === at ? changed : old)))}
          onRemove={() => change(steps.filter((_, place) => place !== at))}
        />
      ))}
      <Notes
        id="workload.drift"
        problems={problems}
        hint={steps.length ? "watch how the learners come back" : "The workload stays the same. Let it change to see who learns."}
      />
      <button
        type="button"
        className="h-8 self-start rounded-lg border border-line bg-sunken px-3 text-xs hover:border-line-strong"
        onClick={add}
      >
        Add a change
      </button>
    </fieldset>
  );
}

function DriftStep({ at, step, presets, onChange, onRemove }: {
  at: number;
  step: Step;
  presets: Preset[];
  onChange: (step: Step) => void;
  onRemove: () => void;
}) {
  const id = `drift-${at}`;
  const box = "num h-9 min-w-0 rounded-lg border border-line bg-raised px-2.5";
  return (
    <div className="grid grid-cols-[1fr_1fr_auto] items-end gap-2">
      <Labelled id={`${id}-after`} label="From task">
        <input
          id={`${id}-after`}
          inputMode="numeric"
          className={box}
          value={shownText(step.after)}
          onChange={(event) => {
            const typed = event.target.value.trim();
            onChange({ ...step, after: /^\d+$/.test(typed) ? Number(typed) : typed });
          }}
        />
      </Labelled>
      <Labelled id={`${id}-preset`} label="the preset is">
        <select id={`${id}-preset`} className={box} value={shownText(step.preset)} onChange={(event) => onChange({ ...step, preset: event.target.value })}>
          {presets.map(({ name }) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </Labelled>
      <button type="button" className="h-9 rounded-lg px-2 text-xs text-muted hover:text-ink" aria-label={`Remove change ${at + 1}`} onClick={onRemove}>
        Remove
      </button>
    </div>
  );
}
