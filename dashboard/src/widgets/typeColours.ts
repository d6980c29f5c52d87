/** The colour of a device type of the run on the screen. */
import { useMemo } from "react";
import { typeColours } from "../devices";
import { useDeviceTypes } from "../live";
import { usePalette } from "../theme";

export function useTypeColours(names?: readonly string[]): (type: string) => string {
  const types = useDeviceTypes();
  const palette = usePalette();
  return useMemo(() => {
    const all = [...new Set([...types.map((type) => type.name), ...(names ?? [])])];
    const colours = typeColours(all, types, palette);
    return (type: string) => colours[type] ?? palette.muted;
  }, [types, palette, names]);
}
