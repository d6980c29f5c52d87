import { Moon, Sun } from "lucide-react";
import { count, perSecond } from "../format";
import { useLive } from "../live";
import { toggleTheme, useTheme } from "../theme";
import { Button } from "../ui/Button";
import { Alerts } from "./Alerts";
import { ConnectionBadge, StaleBanner } from "./ConnectionBadge";
import { Controls } from "./Controls";
import { Help } from "./Help";
import { RunPicker } from "./RunPicker";
import { Settings } from "./Settings";

/** On a phone two rows: the run and the connection, then the controls. */
export function Header() {
  return (
    <header className="sticky top-0 z-20 border-b border-line bg-ground/80 backdrop-blur-xl">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-2 px-3 py-2.5 md:gap-x-4 md:px-5">
        <h1 className="text-[0.9375rem] leading-5 font-semibold tracking-tight whitespace-nowrap max-[1400px]:sr-only">
          Hybrid{" "}
          <span className="bg-linear-to-r from-accent to-accent2 bg-clip-text text-transparent">ML Scheduler</span>
        </h1>
        <div className="min-w-0 max-lg:flex-1">
          <RunPicker />
        </div>
        <span aria-hidden className="order-2 basis-full lg:hidden" />
        <div className="max-lg:order-3">
          <Controls />
        </div>
        <div className="ml-auto max-lg:order-4">
          <Counters />
        </div>
        <ConnectionBadge />
        <div className="flex items-center max-lg:-ml-2">
          <Alerts />
          <Settings />
          <Help />
          <ThemeSwitch />
        </div>
      </div>
      <StaleBanner />
    </header>
  );
}

function Counters() {
  const sent = useLive((live) => live.tasksSent);
  const processed = useLive((live) => live.tasksProcessed);
  const rate = useLive((live) => live.rate);
  return (
    <dl className="num flex items-center gap-4 text-[0.8125rem]">
      <Counter name="sent" testid="tasks-sent" value={count(sent)} raw={sent} />
      <Counter name="processed" testid="tasks-processed" value={count(processed)} raw={processed} />
      <Counter name="rate" testid="rate" value={perSecond(rate)} raw={rate} />
    </dl>
  );
}

function Counter({ name, testid, value, raw }: { name: string; testid: string; value: string; raw: number }) {
  return (
    <div className="flex flex-col leading-tight">
      <dt className="text-[0.6875rem] text-faint">{name}</dt>
      <dd data-testid={testid} data-value={raw} className="font-semibold">
        {value}
      </dd>
    </div>
  );
}

function ThemeSwitch() {
  const theme = useTheme();
  const Icon = theme === "dark" ? Sun : Moon;
  return (
    <Button
      data-testid="theme"
      variant="ghost"
      label={theme === "dark" ? "Light theme" : "Dark theme"}
      icon={<Icon aria-hidden className="size-4.5" />}
      onClick={toggleTheme}
    />
  );
}
