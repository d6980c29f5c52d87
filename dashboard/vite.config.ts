import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const gateway = process.env.HYBRID_URL ?? "http://127.0.0.1:8000";

export default defineConfig({
  plugins: [react(), tailwindcss()],
  server: {
    proxy: {
      // The Host stays the page's own: the gateway compares it with the Origin.
      "/api": { target: gateway },
      "/ws": { target: gateway, ws: true },
    },
  },
  build: {
    target: "es2022",
    chunkSizeWarningLimit: 700,
    rollupOptions: {
      // Charts and React change rarely: their own files stay in the browser's cache.
      output: {
        manualChunks(id) {
          if (/node_modules\/(echarts|zrender)\//.test(id)) return "charts";
          if (/node_modules\/(react|react-dom|scheduler)\//.test(id)) return "react";
          return undefined;
        },
      },
    },
  },
  test: { include: ["src/**/*.test.ts", "src/**/*.test.tsx"], environment: "node" },
});
