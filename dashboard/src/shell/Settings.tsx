import { KeyRound } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { keepToken, readToken } from "../api/client";
import type { Config } from "../api/types";
import { usePolled } from "../api/usePolled";
import { Button } from "../ui/Button";
import { toast } from "../ui/Toast";

/** The token of a guarded gateway. It stays in this tab and goes when the tab is closed. */
export function Settings() {
  const config = usePolled<Config>("/api/config", 0).data;
  const [open, setOpen] = useState(false);
  const [token, setToken] = useState(readToken);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return;
    const leave = (event: Event) => {
      const escape = event instanceof KeyboardEvent && event.key === "Escape";
      const outside = event.type === "pointerdown" && !box.current?.contains(event.target as Node);
      if (escape || outside) setOpen(false);
    };
    document.addEventListener("keydown", leave);
    document.addEventListener("pointerdown", leave);
    return () => {
      document.removeEventListener("keydown", leave);
      document.removeEventListener("pointerdown", leave);
    };
  }, [open]);
  if (!config?.token_required) return null;
  const known = readToken() !== "";
  return (
    <div ref={box} className="relative">
      <Button
        data-testid="settings"
        look="ghost"
        label={known ? "Token (given)" : "Token (needed to change anything)"}
        aria-expanded={open}
        className={known ? "" : "text-warn!"}
        icon={<KeyRound aria-hidden className="size-4.5" />}
        onClick={() => setOpen(!open)}
      />
      {open && (
        <form
          className="glass absolute right-0 z-40 mt-2 w-72 rounded-xl bg-raised! p-4"
          onSubmit={(event) => {
            event.preventDefault();
            keepToken(token.trim());
            setOpen(false);
            toast(token.trim() ? "The token is kept until this tab is closed." : "The token is forgotten.");
          }}
        >
          <label className="block text-xs text-muted" htmlFor="token">
            This gateway wants a token before it changes anything.
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
          <Button type="submit" look="primary">
            Keep
          </Button>
        </form>
      )}
    </div>
  );
}
