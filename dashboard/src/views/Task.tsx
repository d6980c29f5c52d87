import { Empty } from "../ui";

export default function Task() {
  return <Empty>This view is being built.</Empty>;
}
