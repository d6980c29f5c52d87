import type { Polled } from "../../api/polling";
import type { Choice, Choices as Data } from "../../api/types";
import { deviceLabel, typeLabel } from "../../devices";
import { count, modelVersion, score, seconds } from "../../format";
import { Badge, type Column, numberColumn, SchedulerName, Table, Widget } from "../../ui";
import { figuresOf, scoreText, verdict } from "./choice";

type Device = Choice["devices"][number];

const OWN_PREDICTION = "predicted";

const COLUMNS: Column<Device>[] = [
  { key: "device", header: "Device", value: (row) => row.device, show: (row) => deviceLabel(row.device) },
  { key: "type", header: "Type", value: (row) => typeLabel(row.type) },
  numberColumn("queued", "Queued", seconds, "Work of earlier tasks on this device when the task arrived"),
  numberColumn(OWN_PREDICTION, "Predicted", seconds, "The learner's own estimate of the task's seconds there"),
  numberColumn("expected", "Platform says", seconds, "The platform's estimate of the task's seconds there"),
  numberColumn("score", "Score", score, "Lower is better"),
  {
    key: "chosen",
    header: "Choice",
    value: (row) => (row.chosen ? "chosen" : ""),
    show: (row) => (row.chosen ? <Badge tone="good">chosen</Badge> : null),
  },
];

/** Why the learners chose their devices; nothing where no scheduler says what it compared. */
export function Choices({ source }: { source: Polled<Data> }) {
  const choices = source.data?.choices ?? [];
  if (source.data === null ? !source.error : choices.length === 0) return null;
  return (
    <Widget
      id="task-choices"
      title="Why the learners chose their devices"
      caption="What each learner compared when it placed this task, best device first, and the figures of the model that it used."
      source={source}
      scroll
    >
      <div className="grid grid-cols-[repeat(auto-fit,minmax(min(100%,36rem),1fr))] gap-x-8 gap-y-5">
        {choices.map((choice) => (
          <Comparison key={choice.scheduler} choice={choice} />
        ))}
      </div>
    </Widget>
  );
}

function Comparison({ choice }: { choice: Choice }) {
  const predicts = choice.devices.some((device) => device.predicted !== null);
  const hidden = choice.compared - choice.devices.length;
  return (
    <section data-choice-of={choice.scheduler} aria-label={`Choice of ${choice.scheduler}`}>
      <h3 className="flex flex-wrap items-center gap-x-3 gap-y-1 px-2.5">
        <SchedulerName name={choice.scheduler} />
        {choice.explored && <Badge tone="accent2">explored</Badge>}
        {choice.overruled && <Badge tone="warn">overruled</Badge>}
        {!choice.queues_complete && <Badge tone="warn">more was queued</Badge>}
      </h3>
      <p className="px-2.5 pt-1 text-[0.8125rem]" data-testid="verdict">
        {verdict(choice)}
      </p>
      <p className="px-2.5 pb-1 text-xs text-muted">{scoreText(choice.scheduler)}</p>
      <Table
        caption={`What ${choice.scheduler} compared`}
        columns={COLUMNS.filter((column) => predicts || column.key !== OWN_PREDICTION)}
        rows={choice.devices}
        rowKey={(row) => row.device}
        rowAttributes={(row) => ({ "data-device": row.device, "data-chosen": String(row.chosen) })}
      />
      {hidden > 0 && (
        <p className="px-2.5 pt-1 text-xs text-muted">
          {count(hidden)} more {hidden === 1 ? "device has a higher score" : "devices have higher scores"}.
        </p>
      )}
      <ModelFigures choice={choice} />
    </section>
  );
}

function ModelFigures({ choice }: { choice: Choice }) {
  const { model } = choice;
  if (!model) return <p className="px-2.5 pt-2 text-xs text-muted">No figures of the model are stored.</p>;
  return (
    <div className="px-2.5 pt-2">
      <p className="text-xs text-muted">
        Model {modelVersion(model.version)}: {model.reason}
      </p>
      <dl className="num mt-1 grid grid-cols-[repeat(auto-fill,minmax(12.5rem,1fr))] gap-x-6 text-xs">
        {figuresOf(model.metrics).map((figure) => (
          <div key={figure.key} className="flex justify-between gap-2 border-b border-line py-1" title={figure.hint}>
            <dt className="text-muted">{figure.label}</dt>
            <dd data-figure={figure.key} data-value={figure.value} className="whitespace-nowrap">
              {figure.text}
            </dd>
          </div>
        ))}
      </dl>
    </div>
  );
}
