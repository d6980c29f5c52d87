import { Widget } from "../../ui";
import { ChoiceField, NumberField } from "./fields";

export function ClusterFields() {
  return (
    <Widget id="new-cluster" title="Cluster and physics" hint="The virtual node that every scheduler gets one of, and what its work costs." scroll>
      <div className="grid gap-x-4 gap-y-4 px-1 sm:grid-cols-2">
        <NumberField path="cluster.gpus" label="GPUs" hint="1 … 64" />
        <NumberField path="cluster.gpu_memory_mb" label="GPU memory, MB" hint="of each GPU" />
        <ChoiceField
          path="physics.split"
          label="Split mode"
          choices={[
            { value: "serial", label: "Serial", hint: "the GPU part first, then the CPU part" },
            { value: "overlapped", label: "Overlapped", hint: "both parts at once: the best share lies in between" },
          ]}
        />
        <ChoiceField
          path="physics.memory_policy"
          label="When the memory of a GPU is too small"
          choices={[
            { value: "cpu", label: "Use the CPU", hint: "the whole task runs on the CPU" },
            { value: "page", label: "Page", hint: "the overflow pays the transfer twice" },
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
    <Widget id="new-learning" title="Learning" hint="How Hybrid ML and the RL agent begin, and what they aim at. Without pre-training they start as greedy and learn on the way." scroll>
      <div className="grid gap-x-4 gap-y-4 px-1 sm:grid-cols-2">
        <NumberField path="learning.pretrain_tasks" label="Pre-training tasks" hint="generated tasks learned from before the first; 0: none" />
        <NumberField path="learning.energy_weight" label="Energy weight" hint="0: time alone counts, 1: energy alone" />
      </div>
    </Widget>
  );
}
