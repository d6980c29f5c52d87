import { Empty } from "../ui";

export default function History() {
  return <Empty>This view is being built.</Empty>;
}
