/** The widgets of the Arena view, in reading order. A new widget is an import and an entry here. */
import { comparison } from "./Comparison";
import { correlation } from "./Correlation";
import { cumulative } from "./Cumulative";
import { deviceUtilization } from "./DeviceUtilization";
import { gpuCpuTime } from "./GpuCpuTime";
import { heatmap } from "./Heatmap";
import { liveLog } from "./LiveLog";
import type { ArenaWidget } from "./layout";
import { queueLength } from "./QueueLength";
import { ranking } from "./Ranking";
import { recentDecisions } from "./RecentDecisions";
import { scatter } from "./Scatter";
import { taskSizes } from "./TaskSizes";
import { timeline } from "./Timeline";
import { winMatrix } from "./WinMatrix";

export const ARENA_WIDGETS: readonly ArenaWidget[] = [
  comparison,
  ranking,
  cumulative,
  deviceUtilization,
  timeline,
  queueLength,
  winMatrix,
  gpuCpuTime,
  heatmap,
  scatter,
  correlation,
  recentDecisions,
  taskSizes,
  liveLog,
];
