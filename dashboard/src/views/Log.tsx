import { DeadLetters } from "./log/DeadLetters";
import { EventLog } from "./log/EventLog";
import { Lag, Services } from "./log/Services";

export default function Log() {
  return (
    <div className="grid grid-cols-1 gap-4 xl:h-[calc(100dvh-6.5rem)] xl:min-h-[42rem] xl:grid-cols-[minmax(0,3fr)_minmax(0,2fr)]">
      <div className="h-[75dvh] min-h-96 xl:h-full">
        <EventLog />
      </div>
      <div className="grid min-h-0 min-w-0 grid-cols-1 gap-4 xl:grid-rows-[minmax(0,3fr)_minmax(0,2fr)_auto]">
        <div className="h-[30rem] min-h-0 xl:h-auto">
          <Services />
        </div>
        <div className="h-80 min-h-0 xl:h-auto">
          <Lag />
        </div>
        <DeadLetters />
      </div>
    </div>
  );
}
