import { KeyRound } from "lucide-react";
import { useRef, useState } from "react";
import { readToken, storeToken } from "../api/client";
import { usePolled } from "../api/polling";
import type { Config } from "../api/types";
import { Button } from "../ui/Button";
import { toast } from "../ui/Toast";
import { useClosing } from "../ui/useClosing";

/** The token of a gateway that requires one, stored until the tab is closed. */
export function Settings() {
  const config = usePolled<Config>("/api/config", 0).data;
  const [open, setOpen] = useState(false);
  const [token, setToken] = useState(readToken);
  const box = useRef<HTMLDivElement>(null);
  useClosing(open, box, () => setOpen(false));
  if (!config?.token_required) return null;
  const entered = readToken() !== "";
  return (
    <div ref={box} className="relative">
      <Button
        data-testid="settings"
        variant="ghost"
        label={entered ? "Token (entered)" : "Enter the token to control runs"}
        aria-expanded={open}
        className={entered ? "" : "text-warn!"}
        icon={<KeyRound aria-hidden className="size-4.5" />}
        onClick={() => setOpen(!open)}
      />
      {open && (
        <form
          className="glass absolute right-0 z-40 mt-2 w-72 rounded-xl bg-raised! p-4"
          onSubmit={(event) => {
            event.preventDefault();
            storeToken(token.trim());
            setOpen(false);
            toast(token.trim() ? "The token is stored until this tab is closed." : "The token is removed.");
          }}
        >
          <label className="block text-xs text-muted" htmlFor="token">
            This gateway requires a token for every change.
          </label>
          <input
            id="token"
            data-testid="token"
            type="password"
            autoComplete="off"
            autoFocus
            value={token}
            onChange={(event) => setToken(event.target.value)}
            className="mt-2 mb-3 h-9 w-full rounded-lg border border-line bg-sunken px-3 font-mono text-sm"
          />
          <Button type="submit" variant="primary">
            Save
          </Button>
        </form>
      )}
    </div>
  );
}
