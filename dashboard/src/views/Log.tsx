import { EventLog } from "./log/EventLog";
import { DeadLetters, Lag, Services } from "./log/Services";

export default function Log() {
  return (
    <div className="grid gap-4 xl:h-[calc(100dvh-6.5rem)] xl:min-h-[42rem] xl:grid-cols-[3fr_2fr]">
      <div className="h-[75dvh] min-h-96 xl:h-full">
        <EventLog />
      </div>
      <div className="grid min-h-0 gap-4 xl:grid-rows-[3fr_2fr]">
        <div className="max-h-[30rem] min-h-0 xl:max-h-none">
          <Services />
        </div>
        <div className="grid min-h-0 gap-4 sm:grid-cols-2">
          <Lag />
          <DeadLetters />
        </div>
      </div>
    </div>
  );
}
