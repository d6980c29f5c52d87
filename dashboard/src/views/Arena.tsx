import { count } from "../format";
import { Grid, Select } from "../ui";
import { setParameters } from "../url";
import { LatestTask } from "../widgets/LatestTask";
import { layoutsOf } from "../widgets/layout";
import { RunFacts } from "../widgets/RunFacts";
import { ARENA_WIDGETS } from "../widgets/registry";
import { useWindow, WINDOWS } from "../widgets/selection";

const LAYOUTS = layoutsOf(ARENA_WIDGETS);
const WIDGETS = Object.fromEntries(ARENA_WIDGETS.map(({ id, component: Component }) => [id, <Component key={id} />]));

export default function Arena() {
  return (
    <>
      <RunFacts />
      <LatestTask />
      <Grid id="arena" layouts={LAYOUTS} widgets={WIDGETS} toolbar={<WindowSelect />} />
    </>
  );
}

/** How many of the newest tasks the matrices and maps cover. */
function WindowSelect() {
  return (
    <Select
      label="Analyse the newest"
      visibleLabel
      value={String(useWindow())}
      choices={WINDOWS.map((tasks) => ({ value: String(tasks), label: `${count(tasks)} tasks` }))}
      onChoose={(window) => setParameters({ window })}
    />
  );
}
