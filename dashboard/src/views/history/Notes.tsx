import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { put, runPath } from "../../api/client";
import { queryClient, toastFailure } from "../../api/polling";
import type { Run } from "../../api/types";
import { Button, toast, Widget } from "../../ui";

/** What people write about a run: stored by the gateway, found by the search above. */
export function Notes({ run }: { run: Run }) {
  const [tags, setTags] = useState(run.tags.join(", "));
  const [notes, setNotes] = useState(run.notes);
  const list = tags.split(",").flatMap((tag) => tag.trim() || []);
  const changed = notes !== run.notes || list.join() !== run.tags.join();
  const save = useMutation({
    mutationFn: () => put<Run>(runPath(run.run, "/notes"), { tags: list, notes }),
    onSuccess: () => {
      toast("The notes are stored.");
      void queryClient.invalidateQueries();
    },
    onError: (error) => toastFailure("Could not store the notes", error),
  });
  const box = "rounded-lg border border-line bg-raised px-2.5 hover:border-line-strong placeholder:text-faint";
  return (
    <Widget
      exported={false}
      id="run-notes"
      title="Tags and notes"
      caption="For everybody who uses this arena. Searchable."
      scroll
    >
      <form
        className="grid gap-3 px-1 md:grid-cols-[minmax(0,1fr)_minmax(0,2fr)_auto] md:items-end"
        onSubmit={(event) => {
          event.preventDefault();
          save.mutate();
        }}
      >
        <label className="flex flex-col gap-1 text-xs font-medium">
          Tags, separated by commas
          <input
            data-testid="run-tags"
            className={`${box} h-9 text-sm font-normal`}
            placeholder="baseline, figure 2"
            value={tags}
            onChange={(event) => setTags(event.target.value)}
          />
        </label>
        <label className="flex flex-col gap-1 text-xs font-medium">
          Notes
          <textarea
            data-testid="run-notes-text"
            rows={2}
            maxLength={4000}
            className={`${box} resize-y py-1.5 text-sm font-normal`}
            value={notes}
            onChange={(event) => setNotes(event.target.value)}
          />
        </label>
        <Button type="submit" data-testid="save-notes" disabled={!changed || save.isPending}>
          Save
        </Button>
      </form>
    </Widget>
  );
}
