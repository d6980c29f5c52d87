import { Component, type ReactNode } from "react";
import { Button } from "../ui/Button";

/** Shows the error of a view; the rest of the page keeps working. */
export class ErrorBoundary extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override render() {
    const { error } = this.state;
    if (!error) return this.props.children;
    return (
      <div role="alert" className="glass mx-auto mt-16 max-w-lg rounded-2xl p-8 text-center">
        <h2 className="text-lg font-semibold">This view failed</h2>
        <p className="mt-2 mb-5 font-mono text-xs break-words text-muted">{error.message}</p>
        <Button onClick={() => window.location.reload()}>Reload the page</Button>
      </div>
    );
  }
}
