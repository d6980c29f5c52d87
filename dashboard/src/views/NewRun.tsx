import { Empty } from "../ui";

export default function NewRun() {
  return <Empty>This view is being built.</Empty>;
}
