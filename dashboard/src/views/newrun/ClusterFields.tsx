import { usePolled } from "../../api/polling";
import type { Platform } from "../../api/types";
import { Widget } from "../../ui";
import { useDraft, useField } from "./DraftContext";
import { contains } from "./draft";
import { Card, ChoiceField, FieldNote, NumberField } from "./fields";
import { clusterText } from "./summary";

export function ClusterFields() {
  const devices = useField("cluster.devices").value;
  const shortForm = !Array.isArray(devices) || devices.length === 0;
  return (
    <Widget
      exported={false}
      id="new-cluster"
      title="Cluster and physics"
      caption="Every scheduler gets its own simulated cluster with these devices and costs."
      scroll
    >
      <div className="flex flex-col gap-5 px-1">
        <Platforms shortForm={shortForm} />
        <div className="grid gap-x-4 gap-y-4 sm:grid-cols-2">
          {shortForm && (
            <>
              <NumberField path="cluster.gpus" label="GPUs" hint="1 … 64" />
              <NumberField path="cluster.gpu_memory_mb" label="GPU memory, MB" hint="of each GPU" />
              <NumberField path="cluster.cpus" label="CPUs" hint="1 … 64" />
            </>
          )}
          <NumberField
            path="physics.noise"
            label="Noise"
            hint="relative deviation of real from expected times; measured: as the platform's table says"
          />
          <ChoiceField
            path="physics.split"
            label="Split mode"
            choices={[
              { value: "serial", label: "Serial", hint: "first the accelerator's part, then the CPU's" },
              { value: "overlapped", label: "Overlapped", hint: "both parts at the same time" },
            ]}
          />
          <ChoiceField
            path="physics.memory_policy"
            label="When the device's memory is too small"
            choices={[
              { value: "cpu", label: "Use the CPU", hint: "the whole task runs on the CPU" },
              { value: "page", label: "Page", hint: "what does not fit is transferred twice" },
              { value: "fail", label: "Fail", hint: "the task fails, and is charged as on the slowest device" },
            ]}
          />
          <ChoiceField
            path="physics.cost_model"
            label="Cost model"
            choices={[
              { value: "cloud", label: "Cloud", hint: "dollars per second of each device" },
              { value: "electricity", label: "Electricity", hint: "dollars per kilowatt hour" },
            ]}
          />
        </div>
      </div>
    </Widget>
  );
}

/** The default node, a platform of the gateway, or the devices that the JSON lists. */
function Platforms({ shortForm }: { shortForm: boolean }) {
  const platforms = usePolled<Platform[]>("/api/platforms", 0);
  const { draft, complete, setPlatform } = useDraft();
  const { problems } = useField("cluster");
  const selected = platforms.data?.find((platform) => contains(draft, platform.spec)) ?? null;
  const choose = (next: Platform | null) => setPlatform(selected?.spec ?? null, next?.spec ?? null);
  return (
    <fieldset>
      <legend className="pb-1 text-xs font-medium">Platform</legend>
      {platforms.error && !platforms.data && <p className="text-xs text-bad">{platforms.error.message}</p>}
      <div className="grid gap-2 sm:grid-cols-2 2xl:grid-cols-3">
        <Card group="platform" title="default node" checked={shortForm} onCheck={() => choose(null)}>
          CPUs and equal GPUs of one node, as below.
        </Card>
        {!shortForm && !selected && (
          <Card group="platform" title="own devices" checked onCheck={() => undefined}>
            {complete ? clusterText(complete.cluster) : "as in the JSON"}.
          </Card>
        )}
        {(platforms.data ?? []).map((platform) => (
          <Card
            key={platform.name}
            group="platform"
            title={platform.name}
            checked={platform === selected}
            onCheck={() => choose(platform)}
          >
            {platform.description}
          </Card>
        ))}
      </div>
      <FieldNote id="cluster" problems={problems} />
      {selected && <Origin platform={selected} />}
    </fieldset>
  );
}

/** Where the figures of a platform come from. */
function Origin({ platform }: { platform: Platform }) {
  return (
    <details className="pt-2 text-xs text-muted">
      <summary className="cursor-pointer">Sources and assumptions of {platform.name}</summary>
      <ul className="flex list-disc flex-col gap-0.5 pt-1 pl-4">
        {platform.sources.map((source) => (
          <li key={source}>{source}</li>
        ))}
        {platform.assumed.map((assumption) => (
          <li key={assumption}>assumed: {assumption}</li>
        ))}
      </ul>
    </details>
  );
}

export function LearningFields() {
  return (
    <Widget
      exported={false}
      id="new-learning"
      title="Learning"
      caption="For the schedulers that learn. Without pre-training they decide like greedy until they have learned."
      scroll
    >
      <div className="grid gap-x-4 gap-y-4 px-1 sm:grid-cols-2">
        <NumberField
          path="learning.pretrain_tasks"
          label="Pre-training tasks"
          hint="generated tasks to train on before the run; 0: none"
        />
        <NumberField path="learning.energy_weight" label="Energy weight" hint="0: only time counts, 1: only energy" />
      </div>
    </Widget>
  );
}
