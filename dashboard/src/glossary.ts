/** The words of the page that need an explanation, in one place. */

interface Entry {
  title: string;
  meaning: string;
}

export const GLOSSARY = {
  turnaround: {
    title: "Turnaround",
    meaning: "From a task's arrival to its end: its waiting in queues and its execution. What a user feels.",
  },
  wait: { title: "Wait", meaning: "How long a task stood in the queues of its devices before it ran." },
  execution: {
    title: "Execution time",
    meaning: "What a task costs on the devices it was given, without waiting. It does not depend on the load.",
  },
  load: {
    title: "Load",
    meaning:
      "The work that arrives over what all devices together could do if tasks were cut freely among them. At 1 every device is always busy; above it queues grow without end.",
  },
  bound: {
    title: "Bound",
    meaning:
      "The shortest time in which any schedule could finish the run's tasks, from a relaxation in which tasks may be cut freely. No scheduler is below 1× the bound.",
  },
  makespan: { title: "Makespan", meaning: "The simulated time at which the last task of the run ends." },
  oracle: {
    title: "Oracle",
    meaning:
      "A reference that tries every split of a task and takes the fastest: the floor of execution time. It sees no queues, so others beat it on turnaround.",
  },
  score: {
    title: "Score",
    meaning:
      "The weighted mean of a scheduler's ratios to the best in turnaround, execution time, energy and cost. 1 is the best in everything that has a weight; lower is better.",
  },
  pareto: {
    title: "Pareto",
    meaning:
      "No other competitor is at least as good in turnaround, execution time, energy and cost, and better in one of them. Schedulers without this mark are beaten whatever you weigh.",
  },
  intensity: {
    title: "Compute intensity",
    meaning:
      "How much of a task is computing rather than moving data, 0 to 1. The higher, the more an accelerator helps: up to 4 times at 1.",
  },
  regret: {
    title: "Regret",
    meaning: "What a scheduler needed over what the reference needed for the same tasks, in each part of the run.",
  },
  drift: { title: "Drift", meaning: "A change of the workload in mid-run, such as from one preset to another." },
  certificate: {
    title: "Certificate",
    meaning:
      "How far simulations of this platform were from real runs of the same workloads (hybrid validate): the median error of makespan and mean turnaround, and in how many pairs the schedulers keep their order. None: they were never compared.",
  },
  lockstep: {
    title: "Lockstep",
    meaning:
      "Which model decides a task follows from the task's number alone, so that learners give the same results again.",
  },
  slowdown: {
    title: "Slowdown",
    meaning: "A task's turnaround over its time on the fastest device when that is idle.",
  },
  p95: { title: "p95", meaning: "95 % of the tasks were not slower than this." },
} as const satisfies Record<string, Entry>;

export type TermName = keyof typeof GLOSSARY;
