import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { post } from "../api/client";
import { toastFailure, usePolled } from "../api/polling";
import type { Report, Run } from "../api/types";
import { Button, Empty, Matrix, Widget } from "../ui";
import { openView } from "../url";

interface Pair {
  victim: string;
  rival: string;
  ratio: number;
  shrunk: boolean;
  spec: Record<string, unknown>;
}

interface Found {
  measure: string;
  schedulers: string[];
  pairs: Pair[];
}

/** Where schedulers lose: the matrix of the newest report of hybrid adversary; an instance opens as a run. */
export default function Adversary() {
  const reports = usePolled<Report[]>("/api/reports", 30_000);
  const newest = reports.data?.find((each) => each.kind === "adversary");
  const address = newest ? `/api/reports/${encodeURIComponent(newest.name)}/report.json` : null;
  const found = usePolled<Found>(address, 0);
  const [victim, setVictim] = useState("");
  if (!newest) return <Empty>No report of the adversary yet: run hybrid adversary.</Empty>;
  if (!found.data) return null;
  const { schedulers, pairs, measure } = found.data;
  const byPair = new Map(pairs.map((pair) => [`${pair.victim} ${pair.rival}`, pair]));
  const shown = victim || (pairs[0]?.victim ?? "");
  return (
    <div className="flex flex-col gap-4">
      <Widget
        id="adversary-matrix"
        title="Where schedulers lose"
        caption={`Row: the victim; column: the rival. ${measure} of the victim over that of the rival, on the worst instance found.`}
        source={found}
      >
        <Matrix
          caption="Worst ratio of each pair"
          rows={schedulers.map((name) => ({ key: name, label: name }))}
          columns={schedulers.map((name) => ({ key: name, label: name }))}
          cell={(row, column) => {
            const pair = byPair.get(`${schedulers[row]} ${schedulers[column]}`);
            if (!pair) return null;
            return {
              value: pair.ratio,
              text: pair.ratio.toPrecision(2).replace(/e\+(\d+)/, "e$1"),
              title: `${pair.victim} against ${pair.rival}: ${pair.ratio}`,
              shade: pair.ratio > 1 ? -Math.min(1, Math.log10(pair.ratio) + 0.2) : 0.1,
            };
          }}
        />
      </Widget>
      <Widget
        exported={false}
        id="adversary-instances"
        title="Instances"
        caption="Small runs that show the loss; each is a spec that replays bit for bit."
        scroll
      >
        <select
          aria-label="Victim"
          className="mb-2 h-8 rounded-lg border border-line bg-sunken px-2 text-xs"
          value={shown}
          onChange={(event) => setVictim(event.target.value)}
        >
          {schedulers.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
        <ul className="flex flex-col gap-1 text-xs">
          {pairs
            .filter((pair) => pair.victim === shown && pair.ratio > 1)
            .sort((one, other) => other.ratio - one.ratio)
            .map((pair) => (
              <Instance key={pair.rival} pair={pair} />
            ))}
        </ul>
      </Widget>
    </div>
  );
}

function Instance({ pair }: { pair: Pair }) {
  const start = useMutation({
    mutationFn: () => post<Run>("/api/runs", pair.spec),
    onSuccess: (run) => openView("arena", { run: run.run }),
    onError: (error) => toastFailure("Could not open the instance", error),
  });
  return (
    <li className="flex items-center gap-3">
      <Button onClick={() => start.mutate()} disabled={start.isPending}>
        Open
      </Button>
      <span>
        {pair.ratio.toPrecision(3)} × against {pair.rival}
        {pair.shrunk ? ", shrunk" : ""}
      </span>
      <details className="text-muted">
        <summary>spec</summary>
        <pre className="whitespace-pre-wrap">{JSON.stringify(pair.spec, null, 1)}</pre>
      </details>
    </li>
  );
}
