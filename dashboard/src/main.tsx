import "@fontsource-variable/geist";
import "@fontsource-variable/geist-mono";
import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./App";
import { queryClient, refetchOnLiveChanges } from "./api/polling";
import "./index.css";
import { followSystemTheme } from "./theme";
import { preloadViews } from "./views";

const root = document.getElementById("root");
if (!root) throw new Error("index.html has no #root");
refetchOnLiveChanges();
followSystemTheme();
preloadViews();
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <App />
    </QueryClientProvider>
  </StrictMode>,
);
