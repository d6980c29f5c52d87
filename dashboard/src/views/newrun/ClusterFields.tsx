import { Widget } from "../../ui";
import { ChoiceField, NumberField } from "./fields";

export function ClusterFields() {
  return (
    <Widget
      id="new-cluster"
      title="Cluster and physics"
      caption="Every scheduler gets its own simulated cluster with these devices and costs."
      scroll
    >
      <div className="grid gap-x-4 gap-y-4 px-1 sm:grid-cols-2">
        <NumberField path="cluster.gpus" label="GPUs" hint="1 … 64" />
        <NumberField path="cluster.gpu_memory_mb" label="GPU memory, MB" hint="of each GPU" />
        <ChoiceField
          path="physics.split"
          label="Split mode"
          choices={[
            { value: "serial", label: "Serial", hint: "first the GPU part, then the CPU part" },
            { value: "overlapped", label: "Overlapped", hint: "both parts at the same time" },
          ]}
        />
        <ChoiceField
          path="physics.memory_policy"
          label="When GPU memory is too small"
          choices={[
            { value: "cpu", label: "Use the CPU", hint: "the whole task runs on the CPU" },
            { value: "page", label: "Page", hint: "what does not fit is transferred twice" },
            { value: "fail", label: "Fail", hint: "the task fails" },
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
        <NumberField path="cluster.cpus" label="CPUs" hint="1 … 64" />
      </div>
    </Widget>
  );
}

export function LearningFields() {
  return (
    <Widget
      id="new-learning"
      title="Learning"
      caption="For Hybrid ML and the RL agent. Without pre-training they decide like greedy until they have learned."
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
