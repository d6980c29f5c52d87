import { Select } from "../ui";
import { type Arrangement, Grid } from "../ui/Grid";
import { setParameters } from "../url";
import { Correlation } from "../widgets/Correlation";
import { Cumulative } from "../widgets/Cumulative";
import { DeviceUse } from "../widgets/DeviceUse";
import { Heatmap } from "../widgets/Heatmap";
import { Ledger } from "../widgets/Ledger";
import { LiveLog } from "../widgets/LiveLog";
import { Now } from "../widgets/Now";
import { Race } from "../widgets/Race";
import { Scatter } from "../widgets/Scatter";
import { Sizes } from "../widgets/Sizes";
import { Split } from "../widgets/Split";
import { useWindow, WINDOWS } from "../widgets/subject";
import { WeightsPanel } from "../widgets/WeightsPanel";
import { Wins } from "../widgets/Wins";
import { count } from "../format";

const ARRANGEMENTS: Arrangement[] = [
  {
    name: "wall",
    from: 1800,
    columns: 16,
    places: {
      race: [0, 0, 5, 11],
      weights: [5, 0, 3, 11],
      cumulative: [8, 0, 4, 11],
      utilization: [12, 0, 4, 11],
      wins: [0, 11, 4, 10],
      heatmap: [4, 11, 4, 10],
      scatter: [8, 11, 4, 10],
      correlation: [12, 11, 4, 10],
      ledger: [0, 21, 8, 13],
      split: [8, 21, 4, 13],
      sizes: [12, 21, 4, 6],
      log: [12, 27, 4, 7],
    },
  },
  {
    name: "wide",
    from: 1120,
    columns: 12,
    places: {
      race: [0, 0, 5, 11],
      weights: [5, 0, 3, 11],
      cumulative: [8, 0, 4, 11],
      utilization: [0, 11, 4, 9],
      wins: [4, 11, 4, 9],
      split: [8, 11, 4, 9],
      heatmap: [0, 20, 4, 9],
      scatter: [4, 20, 4, 9],
      correlation: [8, 20, 4, 9],
      ledger: [0, 29, 8, 13],
      sizes: [8, 29, 4, 6],
      log: [8, 35, 4, 7],
    },
  },
  {
    name: "medium",
    from: 640,
    columns: 6,
    places: {
      race: [0, 0, 6, 10],
      weights: [0, 10, 3, 11],
      cumulative: [3, 10, 3, 11],
      utilization: [0, 21, 3, 9],
      wins: [3, 21, 3, 9],
      split: [0, 30, 3, 9],
      heatmap: [3, 30, 3, 9],
      scatter: [0, 39, 3, 9],
      correlation: [3, 39, 3, 9],
      ledger: [0, 48, 6, 12],
      sizes: [0, 60, 3, 7],
      log: [3, 60, 3, 7],
    },
  },
];

const WIDGETS = {
  race: <Race />,
  weights: <WeightsPanel />,
  cumulative: <Cumulative />,
  utilization: <DeviceUse />,
  wins: <Wins />,
  split: <Split />,
  heatmap: <Heatmap />,
  scatter: <Scatter />,
  correlation: <Correlation />,
  ledger: <Ledger />,
  sizes: <Sizes />,
  log: <LiveLog />,
};

export default function Arena() {
  return (
    <>
      <Now />
      <Grid id="arena" arrangements={ARRANGEMENTS} widgets={WIDGETS} toolbar={<WindowSelect />} />
    </>
  );
}

function WindowSelect() {
  return (
    <Select
      label="Matrices and maps over the newest"
      visibleLabel
      value={String(useWindow())}
      choices={WINDOWS.map((tasks) => ({ value: String(tasks), label: `${count(tasks)} tasks` }))}
      onChoose={(window) => setParameters({ window })}
    />
  );
}
