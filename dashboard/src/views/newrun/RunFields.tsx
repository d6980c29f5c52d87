import { usePolled } from "../../api/polling";
import type { Preset } from "../../api/types";
import { Widget } from "../../ui";
import { useDraft, useField } from "./DraftContext";
import { textOf } from "./draft";
import { Card, ChoiceField, FieldNote, LabelledField, NumberField, Segments, TextField } from "./fields";

export function RunFields() {
  const name = useField("name");
  return (
    <Widget
      exported={false}
      id="new-run"
      title="Run"
      caption="Length and speed. An empty field has the default shown in grey."
      scroll
    >
      <div className="grid gap-x-4 gap-y-4 px-1 sm:grid-cols-2">
        <TextField
          id="name"
          label="Name"
          hint="shown in lists of runs"
          value={textOf(name.value)}
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
        value={endless ? "endless" : "limited"}
        choices={[
          { value: "endless", label: "Endless" },
          { value: "limited", label: "Number of tasks" },
        ]}
        onChoose={(choice) => set(choice === "endless" ? undefined : 10_000)}
      />
      {endless ? (
        <FieldNote id="tasks" hint="runs until it is stopped" problems={problems} />
      ) : (
        <NumberField path="tasks" label="Tasks" required />
      )}
    </div>
  );
}

function Pace() {
  const { value, problems, set } = useField("pace");
  const maximum = value === "max";
  return (
    <div className="flex flex-col gap-1">
      <span className="text-xs font-medium">Pace</span>
      <Segments
        label="Pace"
        value={maximum ? "max" : "fixed"}
        choices={[
          { value: "fixed", label: "Fixed" },
          { value: "max", label: "Maximum" },
        ]}
        onChoose={(choice) => set(choice === "max" ? "max" : undefined)}
      />
      {maximum ? (
        <FieldNote id="pace" hint="thousands of tasks per second" problems={problems} />
      ) : (
        <NumberField path="pace" label="Tasks per second" />
      )}
    </div>
  );
}

export function WorkloadFields() {
  return (
    <Widget
      exported={false}
      id="new-workload"
      title="Workload"
      caption="The properties of the tasks. With hpc, a GPU of the default node is faster for about half of them."
      scroll
    >
      <div className="flex flex-col gap-5 px-1">
        <Presets />
        <div className="grid gap-x-4 gap-y-4 sm:grid-cols-2">
          <NumberField
            path="workload.arrival_rate"
            label="Arrival rate"
            hint="tasks per simulated second; more means longer queues"
          />
          <Arrivals />
          <NumberField
            path="workload.dependencies.probability"
            label="Dependencies"
            hint="share of tasks that depend on earlier ones, 0 … 1"
          />
        </div>
        <DriftFields />
      </div>
    </Widget>
  );
}

/** A kind of arrivals has settings of its own: those of the kind before are removed. */
function Arrivals() {
  const { set } = useDraft();
  return (
    <ChoiceField
      path="workload.arrivals.kind"
      label="Arrivals"
      choices={[
        { value: "poisson", label: "Poisson", hint: "independent, at a constant rate" },
        { value: "bursty", label: "Bursty", hint: "bursts of tasks and pauses, with the same mean rate" },
        { value: "diurnal", label: "Diurnal", hint: "few at night, many by day, with the same mean rate" },
      ]}
      onChoose={(kind) => set("workload.arrivals", kind === "poisson" ? undefined : { kind })}
    />
  );
}

function Presets() {
  const presets = usePolled<Preset[]>("/api/presets", 0);
  const { setPreset } = useDraft();
  const { value, fallback, problems } = useField("workload.preset");
  const selected = textOf(value ?? fallback);
  return (
    <fieldset>
      <legend className="pb-1 text-xs font-medium">Preset</legend>
      {presets.error && !presets.data && <p className="text-xs text-bad">{presets.error.message}</p>}
      <div className="grid gap-2 sm:grid-cols-2 2xl:grid-cols-3">
        {(presets.data ?? []).map((preset) => (
          <Card
            key={preset.name}
            group="preset"
            title={preset.name}
            checked={selected === preset.name}
            onCheck={() => setPreset(preset.name)}
          >
            {preset.description}
          </Card>
        ))}
      </div>
      <FieldNote id="workload.preset" problems={problems} />
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
      <legend className="pb-1 text-xs font-medium">Changes of the workload (drift)</legend>
      {steps.map((step, at) => (
        <DriftStep
          // biome-ignore lint/suspicious/noArrayIndexKey: a step has no identity but its position.
          key={at}
          at={at}
          step={step}
          presets={presets}
          onChange={(changed) => change(steps.map((old, index) => (index === at ? changed : old)))}
          onRemove={() => change(steps.filter((_, index) => index !== at))}
        />
      ))}
      <FieldNote
        id="workload.drift"
        problems={problems}
        hint={steps.length ? undefined : "None. Add one to see which schedulers adapt."}
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

function DriftStep({
  at,
  step,
  presets,
  onChange,
  onRemove,
}: {
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
      <LabelledField id={`${id}-after`} label="From task">
        <input
          id={`${id}-after`}
          inputMode="numeric"
          className={box}
          value={textOf(step.after)}
          onChange={(event) => {
            const input = event.target.value.trim();
            onChange({ ...step, after: /^\d+$/.test(input) ? Number(input) : input });
          }}
        />
      </LabelledField>
      <LabelledField id={`${id}-preset`} label="Preset">
        <select
          id={`${id}-preset`}
          className={box}
          value={textOf(step.preset)}
          onChange={(event) => onChange({ ...step, preset: event.target.value })}
        >
          {presets.map(({ name }) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </LabelledField>
      <button
        type="button"
        className="h-9 rounded-lg px-2 text-xs text-muted hover:text-ink"
        aria-label={`Remove change ${at + 1}`}
        onClick={onRemove}
      >
        Remove
      </button>
    </div>
  );
}
